#!/bin/sh
# Runs PostgreSQL, and FerretDB in front of it on port 27017. The container exits as soon as one of them exits.
# Arguments are passed to postgres (-c name=value), and FERRETDB_FLAGS (default: --no-auth) to FerretDB.
data=/var/lib/postgresql/data
postgres= ferretdb=

fail() {
  echo "mongodb-wire: $1" >&2
  exit 1
}

missing=
for program in postgres psql ferretdb rm sleep; do
  command -v "$program" > /dev/null || missing="$missing $program"
done
[ -z "$missing" ] || fail "cannot start without these programs:$missing"

is_running() { kill -0 "$1" 2> /dev/null; }

# Repeats a command until it succeeds, for at most about a minute.
until_it_works() {
  tries_left=1000
  until output=$("$@" 2>&1); do
    is_running "$postgres" || fail 'postgres has exited'
    [ -z "$ferretdb" ] || is_running "$ferretdb" || fail 'ferretdb has exited'
    [ $((tries_left -= 1)) -gt 0 ] || fail "'$*' still fails: $output"
    sleep 0.05
  done
}

stop_both() {
  kill -TERM $ferretdb 2> /dev/null
  kill -INT $postgres 2> /dev/null
  wait
}

# Files of a killed server would prevent the next start, or look like a running server.
rm -f $data/postmaster.pid /run/postgresql/.s.PGSQL.5432*
postgres -D $data "$@" &
postgres=$!
trap 'stop_both; exit 0' TERM INT
# After a kill, the socket exists before PostgreSQL has recovered. Only a response shows that it is ready.
until_it_works psql -h /run/postgresql -U postgres -d postgres -tAc 'SELECT 1'

ferretdb --listen-addr=0.0.0.0:27017 --debug-addr= --log-level="${FERRETDB_LOG:-ERROR}" \
  --postgresql-url='postgres:///postgres?host=/run/postgresql&user=postgres' \
  --state-dir=/var/lib/ferretdb --telemetry=disable ${FERRETDB_FLAGS---no-auth} &
ferretdb=$!
until_it_works ferretdb ping --listen-addr=127.0.0.1:27017 --no-auth --state-dir=/tmp

echo 'mongodb-wire: ready'
while is_running $postgres && is_running $ferretdb; do sleep 1 & wait $!; done
stop_both
fail 'postgres or ferretdb has exited'
