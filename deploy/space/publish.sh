#!/bin/sh
# Usage: deploy/space/publish.sh FOLDER. Copies what is tracked here into FOLDER, a clone of a Hugging Face Space,
# with the README that a Space wants. Committing and pushing there is left to you.
set -eu
target=${1:?"name the folder of the clone of your Space"}
cd "$(dirname "$0")/../.."
mkdir -p "$target"
# What is no longer tracked here goes there, too.
if [ -e "$target/.git" ]; then git -C "$target" rm -rqf --ignore-unmatch -- . ':!.gitattributes'; fi
git archive HEAD | tar -x -C "$target"
cp deploy/space/README.md "$target/README.md"
# A Space refuses binary files that git-lfs (or git-xet) does not store: `git lfs install` once, before you add them.
for kind in safetensors png webp; do
    line="*.$kind filter=lfs diff=lfs merge=lfs -text"
    grep -qxF "$line" "$target/.gitattributes" 2>/dev/null || echo "$line" >>"$target/.gitattributes"
done
