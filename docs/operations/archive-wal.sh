#!/bin/sh
# PostgreSQL's archive_command, the same on every node: /usr/local/bin/archive-wal %p %f /backup/wal
#
# Ends with 0 only when the file is stored safely and whole. Nothing is ever overwritten. A file that is there already
# was stored by this node before a crash, or by the other node: that is a success if it is the same, byte for byte.
set -eu
source=$1 stored=$3/$2
same() { cmp -s "$source" "$stored"; }

if [ -e "$stored" ]; then
    same && exit 0
    echo "archive-wal: $stored is there with other contents" >&2
    exit 1
fi
new=$(mktemp "$3/.$2.XXXXXX")
trap 'rm -f "$new"' EXIT
cp "$source" "$new"
sync "$new"
ln "$new" "$stored" || same # the other node was faster
sync "$3"
