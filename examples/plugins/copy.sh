#!/bin/sh
# A plug-in program: copies the files of a directory to another one, and says how far it is.
#
#   program: {plugin: {command: /usr/local/lib/cronhold/copy.sh, settings: {source: /data/in, target: /data/out}}}

# The message is one line. Without a JSON parser, this reads values that contain no quotes and no backslashes.
read -r start
setting() { printf '%s\n' "$start" | sed -n 's/.*"settings":{[^}]*"'"$1"'":"\([^"\\]*\)".*/\1/p'; }

escape() { printf '%s' "$1" | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g'; }
output() { printf '{"type":"output","text":"%s"}\n' "$(escape "$1")"; }
progress() { printf '{"type":"progress","percent":%s,"text":"%s"}\n' "$1" "$(escape "$2")"; }
result() { printf '{"type":"result","outcome":"%s","message":"%s"}\n' "$1" "$(escape "$2")"; exit 0; }

done=0
# Cronhold sends SIGTERM to stop a run. The result says what is left to do.
trap 'result failure "stopped after $done files"' TERM

source=$(setting source) target=$(setting target)
[ -n "$source" ] && [ -n "$target" ] || result error 'the settings `source` and `target` are needed'
[ -d "$source" ] || result failure "$source is not a directory"
mkdir -p "$target" || result error "cannot create $target"

all=$(find "$source" -maxdepth 1 -type f | wc -l)
for file in "$source"/*; do
    [ -f "$file" ] || continue
    progress $((done * 100 / all)) "${file##*/}"
    cp -p "$file" "$target"/ || result error "cannot copy $file"
    done=$((done + 1))
    output "copied ${file##*/}"
done
result success "$done files"
