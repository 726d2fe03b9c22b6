#!/usr/bin/env bash
# Builds a Docker image that speaks the MongoDB wire protocol, for machines that cannot pull mongo:8:
# FerretDB 2 (a Go module) in front of PostgreSQL 18 with DocumentDB (Debian packages), in one container.
# The build takes 1 to 3 minutes on two cores and 0.9 GB of disk space. The image has 186 MB.
# Usage: mongodb-wire-image.sh IMAGE
# Requires root, debootstrap, a running Docker, a Debian mirror that serves $suite, and a Go module proxy. Uses the Go of
# this machine if it is new enough, and otherwise installs Debian's Go in the build root.
# Settings: MIRROR (default: the mirror that apt uses on this machine).
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
image=${1:?the name of the image to build}

scripts=$(cd "$(dirname "$0")" && pwd)
suite=forky # The first suite that contains postgresql-18-documentdb.
ferretdb_version=v2.7.0
go_needed=1.25
# Not in the temporary folder, which may be small and may be mounted with nodev or noexec.
work=/var/cache/petstore-test/mongodb-wire
root=$work/root
slim=$work/slim
pg_bin=/usr/lib/postgresql/18/bin
pg_data=/var/lib/postgresql/data

step_began=$SECONDS
step_done() {
  printf '%-44s %4ds\n' "$1" $((SECONDS - step_began))
  step_began=$SECONDS
}

# The mounts of the command disappear with it, even if it is killed.
in_own_mounts() { unshare --mount --propagation private "$@"; }

# Runs a command in the build root. The certificates of this machine are copied there, so variables that point to its files are unset.
in_root() {
  in_own_mounts env -u SSL_CERT_FILE -u SSL_CERT_DIR -u CURL_CA_BUNDLE HOME=/root \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c '
      root=$1; shift
      mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"
      exec chroot "$root" "$@"' in_root "$root" "$@"
}

as_postgres() { in_root setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }

go_is_new_enough() {
  local version
  version=$(GOTOOLCHAIN=local go env GOVERSION 2> /dev/null | sed 's/^go//') || return 1
  [ -n "$version" ] && [ "$(printf '%s\n' "$go_needed" "$version" | sort -V | head -n 1)" = "$go_needed" ]
}

mirror=$(bash "$scripts/debian-mirror.sh")

mkdir -p "$work"
# If two runs build the image at the same time, the second one waits for the first and uses its image.
exec 9> "$work.lock"
flock 9
if docker image inspect "$image" > /dev/null 2>&1; then
  echo "$image was built in the meantime"
  exit 0
fi
rm -rf --one-file-system "$work"
mkdir -p "$work"
container=
clean_up() {
  if [ -n "$container" ]; then docker rm --force "$container" > /dev/null; fi
  wait # for jobs that still write to $work
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT

# FerretDB is a static binary. Its build is the longest step, so it runs in parallel as soon as a suitable Go is available.
go_log=$work/go-install.log
go_install=(go install -trimpath -ldflags '-s -w' "github.com/FerretDB/FerretDB/v2/cmd/ferretdb@$ferretdb_version")
export CGO_ENABLED=0 GOTOOLCHAIN=local
ferretdb_job=
if go_is_new_enough; then
  ferretdb=$work/ferretdb/ferretdb
  GOBIN=$work/ferretdb "${go_install[@]}" > "$go_log" 2>&1 &
  ferretdb_job=$!
fi

# 1. A minimal Debian. An older debootstrap has no script for the suite, but sid's script fits every suite.
in_own_mounts debootstrap --variant=minbase "$suite" "$root" "$mirror" /usr/share/debootstrap/scripts/sid
# Keep this machine's apt settings, such as proxies, but skip translations and the indexes that only desktops need.
apt-config dump Acquire | grep -vE '^Acquire::(IndexTargets|Languages)' > "$root/etc/apt/apt.conf.d/90machine"
echo 'Acquire::Languages "none";' >> "$root/etc/apt/apt.conf.d/90machine"
certificates=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
if [ -f "$certificates" ]; then install -D -m 644 "$certificates" "$root/etc/ssl/certs/ca-certificates.crt"; fi
step_done "debootstrap $suite"

# 2. PostgreSQL and DocumentDB, without manuals and locales. Nothing starts a service or creates a cluster.
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
printf 'path-exclude=/usr/share/%s/*\n' doc man locale > "$root/etc/dpkg/dpkg.cfg.d/01slim"
mkdir -p "$root/etc/postgresql-common"
echo 'create_main_cluster = false' > "$root/etc/postgresql-common/createcluster.conf"
in_root apt-get update
if [ -z "$ferretdb_job" ]; then
  # Even if this machine's Go is too old for the build, it knows which module proxy to use.
  for name in GOPROXY GOSUMDB; do
    if value=$(go env "$name" 2> /dev/null) && [ -n "$value" ]; then export "$name=$value"; fi
  done
  in_root apt-get install -y --no-install-recommends golang-go
  step_done 'apt-get install golang-go'
  in_root env -u GOROOT -u GOPATH -u GOCACHE -u GOMODCACHE -u GOENV GOBIN=/root/bin "${go_install[@]}" > "$go_log" 2>&1 &
  ferretdb=$root/root/bin/ferretdb
  ferretdb_job=$!
fi
in_root apt-get install -y --no-install-recommends postgresql-18-documentdb
step_done 'apt-get install postgresql-18-documentdb'

# 3. A database cluster that already contains the extensions, so that a container only has to start it.
install -d -o "$(in_root id -u postgres)" -g "$(in_root id -g postgres)" "$root/run/postgresql"
as_postgres $pg_bin/initdb -D $pg_data -E UTF8 --locale=C.UTF-8 -A trust --wal-segsize=4 --no-sync --no-instructions
cat >> "$root$pg_data/postgresql.conf" << 'END'
# A test server: its data must survive a killed process, but not a crash of the machine. Commits therefore
# wait for the write to the operating system (synchronous_commit), but not for the disk (fsync).
shared_preload_libraries = 'pg_cron, pg_documentdb_core, pg_documentdb, pg_documentdb_extended_rum'
listen_addresses = '127.0.0.1'
unix_socket_directories = '/run/postgresql'
max_connections = 200
shared_buffers = 256MB
fsync = off
synchronous_commit = on
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = 256MB
min_wal_size = 16MB
max_parallel_workers_per_gather = 0
jit = off
# Query plans need table statistics: collect them within seconds instead of a minute.
autovacuum_naptime = 2s
timezone = 'UTC'
log_timezone = 'UTC'
log_min_messages = warning
cron.database_name = 'postgres'
cron.host = '/run/postgresql'
cron.log_run = off
cron.log_statement = off
# Ordered scans of compound indexes. Without these settings, a find with an equality condition
# and a sort by the next key of the index fetches and sorts every match.
documentdb.rum_library_load_option = 'require_documentdb_extended_rum'
documentdb.alternate_index_handler_name = 'extended_rum'
documentdb.enableCompositeIndexPlanner = on
documentdb_core.enableCollation = on
END
cat > "$root/tmp/extensions.sql" << 'END'
CREATE EXTENSION documentdb CASCADE;
CREATE EXTENSION documentdb_extended_rum;
-- TTL indexes: remove expired documents within seconds instead of a minute.
UPDATE cron.job SET schedule = '2 seconds' WHERE jobname = 'documentdb_ttl_task';
VACUUM (FREEZE, ANALYZE);
CHECKPOINT;
END
cat > "$root/tmp/extensions.sh" << END
set -e
$pg_bin/pg_ctl -D $pg_data -w -s -l /tmp/extensions.log start || { cat /tmp/extensions.log; exit 1; }
$pg_bin/psql -h /run/postgresql -d postgres -X -q -v ON_ERROR_STOP=1 -f /tmp/extensions.sql
$pg_bin/pg_ctl -D $pg_data -w -s -m fast stop
END
as_postgres sh /tmp/extensions.sh
step_done 'initdb, extensions'

wait "$ferretdb_job" || { tail -n 20 "$go_log"; exit 1; }
step_done "go install ferretdb@$ferretdb_version (remaining time)"

# 4. A slim root with only what the server needs: PostgreSQL, the extensions, their libraries, and a shell.
mkdir -p "$slim"/{etc,dev,proc,sys,tmp,run/postgresql,var/lib/ferretdb,var/lib/postgresql,usr/bin,usr/sbin,usr/lib,usr/lib64,usr/local/bin}
ln -s usr/bin usr/sbin usr/lib usr/lib64 "$slim/"
ln -s ../run "$slim/var/run"
chmod 1777 "$slim/tmp"
cat > "$root/tmp/files.sh" << 'END'
set -e
programs="/usr/lib/postgresql/18/bin/postgres /usr/lib/postgresql/18/bin/psql /usr/bin/dash /usr/bin/sleep /usr/bin/rm"
extensions=$(for name in pg_cron pg_documentdb pg_documentdb_core pg_documentdb_extended_rum pg_documentdb_extended_rum_core \
  postgis-3 rum vector tsm_system_rows plpgsql dict_snowball libpqwalreceiver; do echo /usr/lib/postgresql/18/lib/$name.so; done)
for file in $programs $extensions; do
  echo "$file"
  ldd "$file" | sed -nE 's/.*=> (\/[^ ]+) .*/\1/p; s/^[[:space:]]*(\/[^ ]+) .*/\1/p'
done | sort -u | while read -r file; do echo "$file"; readlink -f "$file"; done | sed -E 's#^/(bin|sbin|lib|lib64)/#/usr/\1/#' | sort -u
find /usr/lib/locale/C.utf8 /usr/share/zoneinfo/UTC /usr/share/zoneinfo/Etc -type f -o -type l
find /usr/share/postgresql/18 -path '*/man' -prune -o -path '*/contrib' -prune -o -type f -print |
  grep -vE '/extension/(postgis_(raster|sfcgal|topology|tiger)|address_standardizer|documentdb_distributed)' |
  grep -vE '/(postgis--|postgis--ANY|postgis_)'
END
in_root sh /tmp/files.sh > "$work/files.txt"
tar -C "$root" -cf - --no-recursion -T <(sed 's#^/##' "$work/files.txt" | sort -u) | tar -C "$slim" -xf - --keep-directory-symlink
ln -sf dash "$slim/usr/bin/sh"
for file in passwd group; do grep -E '^(root|postgres):' "$root/etc/$file" > "$slim/etc/$file"; done
mv "$root$pg_data" "$slim$pg_data"
chown --reference="$slim$pg_data" "$slim/run/postgresql" "$slim/var/lib/ferretdb" "$slim/var/lib/postgresql"
install -m 755 "$ferretdb" "$slim/usr/local/bin/ferretdb"
install -m 755 "$scripts/mongodb-wire-entrypoint.sh" "$slim/usr/local/bin/entrypoint"
step_done "slim root ($(du -sm "$slim" | cut -f1) MB of $(du -sm "$root" | cut -f1) MB)"

# 5. The image. It gets its name only after a server has started from it.
image_id=$(tar -C "$slim" --numeric-owner -cf - . | docker import --change 'USER postgres' --change 'EXPOSE 27017' \
  --change "ENV PATH=$pg_bin:/usr/local/bin:/usr/bin" --change 'ENTRYPOINT ["/usr/local/bin/entrypoint"]' -)
container=$(docker run --detach --network none "$image_id")
until docker logs "$container" 2>&1 | grep 'mongodb-wire: ready' > /dev/null; do
  if [ "$(docker inspect --format '{{.State.Running}}' "$container")" != true ] || [ $((SECONDS - step_began)) -gt 90 ]; then
    echo 'The new image does not start:'
    docker logs "$container"
    docker rm --force "$container" > /dev/null
    container=
    docker image rm "$image_id" > /dev/null
    exit 1
  fi
  sleep 0.2
done
docker tag "$image_id" "$image"
step_done 'docker import, first start'
