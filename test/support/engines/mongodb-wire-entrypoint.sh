#!/bin/sh
# PostgreSQL, and in front of it FerretDB on port 27017; the end of either ends the container.
# Arguments go to postgres (-c name=value). FERRETDB_FLAGS, "--no-auth" by default, go to FerretDB.
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

# Repeats a command until it succeeds, for about a minute at the most.
until_it_works() {
  tries_left=1000
  until output=$("$@" 2>&1); do
    is_running "$postgres" || fail 'postgres has ended'
    [ -z "$ferretdb" ] || is_running "$ferretdb" || fail 'ferretdb has ended'
    [ $((tries_left -= 1)) -gt 0 ] || fail "'$*' still fails: $output"
    sleep 0.05
  done
}

stop_both() {
  kill -TERM $ferretdb 2> /dev/null
  kill -INT $postgres 2> /dev/null
  wait
}

# What a killed server leaves behind would keep the next from starting, or look like one that answers.
rm -f $data/postmaster.pid /run/postgresql/.s.PGSQL.5432*
postgres -D $data "$@" &
postgres=$!
trap 'stop_both; exit 0' TERM INT
# The socket is there before a killed server has recovered: only one that answers is ready for FerretDB.
until_it_works psql -h /run/postgresql -U postgres -d postgres -tAc 'SELECT 1'

ferretdb --listen-addr=0.0.0.0:27017 --debug-addr= --log-level="${FERRETDB_LOG:-ERROR}" \
  --postgresql-url='postgres:///postgres?host=/run/postgresql&user=postgres' \
  --state-dir=/var/lib/ferretdb --telemetry=disable ${FERRETDB_FLAGS---no-auth} &
ferretdb=$!
until_it_works ferretdb ping --listen-addr=127.0.0.1:27017 --no-auth --state-dir=/tmp

echo 'mongodb-wire: ready'
while is_running $postgres && is_running $ferretdb; do sleep 1 & wait $!; done
stop_both
fail 'postgres or ferretdb has ended'
