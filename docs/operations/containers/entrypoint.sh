#!/bin/sh
# Runs a command of Guichet in a container. Each file in /run/secrets that is named like a variable becomes that
# variable, so that secrets stand in no image, no compose file and no `inspect`.
set -eu

for file in "${SECRETS_FOLDER:-/run/secrets}"/*; do
    name=${file##*/}
    case $name in
        *[!A-Z0-9_]* | [0-9]*) continue ;;
    esac
    if [ ! -r "$file" ]; then
        echo "✗ User $(id -u) may not read $file: see docs/operations/containers.md." >&2
        exit 1
    fi
    export "$name=$(cat "$file")"
done
unset SECRETS_FOLDER file name

exec guichet "$@"
