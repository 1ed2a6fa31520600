#!/bin/sh
# Moves a box, which is a schema, to another server:  sh move.sh <schema> <from URL> <to URL>
# Stop the processes that run the box first. A process that still uses it fails from the first step on, and loses nothing.
set -eu
schema=$1 from=$2 to=$3
dump=$(mktemp)
trap 'rm -f "$dump"' EXIT

# Nobody finds the box under its name any more, and who has a transaction open in it is waited for.
psql -X -q -v ON_ERROR_STOP=1 "$from" <<SQL
alter schema "$schema" rename to "${schema}_moved";
do \$\$ begin
  execute (select 'lock table ' || string_agg(format('%I.%I', schemaname, tablename), ', ' order by tablename)
           from pg_tables where schemaname = '${schema}_moved');
end \$\$;
SQL

pg_dump --schema="\"${schema}_moved\"" --no-owner --no-privileges --file="$dump" "$from"
psql -X -q -o /dev/null -v ON_ERROR_STOP=1 --single-transaction --file="$dump" "$to"
psql -X -q -v ON_ERROR_STOP=1 "$to" -c "alter schema \"${schema}_moved\" rename to \"$schema\"" -c analyze
