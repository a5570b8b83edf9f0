#!/bin/sh
# A plug-in condition: holds while a file system has enough free space.
#
#   conditions:
#     - {plugin: {command: /usr/local/lib/cronhold/free-space.sh, settings: {path: /data, mebibytes: 500}}, poll: 1m}

read -r check
setting() { printf '%s\n' "$check" | sed -n 's/.*"settings":{[^}]*"'"$1"'":"\([^"\\]*\)".*/\1/p'; }
answer() { printf '{"type":"result","outcome":"%s","message":"%s"}\n' "$1" "$2"; exit 0; }

path=$(setting path) least=$(setting mebibytes)
[ -n "$path" ] && [ -n "$least" ] || answer error 'the settings `path` and `mebibytes` are needed'
free=$(df -Pm "$path" 2>/dev/null | awk 'NR == 2 {print $4}')
[ -n "$free" ] || answer error 'the file system cannot be read'
[ "$free" -ge "$least" ] && answer holds
answer does_not_hold "$free MiB are free, $least are needed"
