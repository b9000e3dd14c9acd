#!/usr/bin/env bash
# A study of CartPole-v1 from nothing to the gate. Usage: examples/first_study.sh FOLDER (made anew).
# Each step is a command that you could type yourself.
set -euo pipefail
folder=${1:?name a folder for the study}
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder"
step() { printf '\n$ %s\n' "$*"; "$@"; }
refused() { printf '\n$ %s\n' "$*"; if "$@"; then echo "this should have been refused" >&2; exit 1; else [ $? -eq 3 ]; fi; }

step overnight init CartPole-v1 --hours 1
refused overnight start
step overnight approve --yes
step overnight approve experiments --yes
step overnight propose --set learning_rate=0.001 --because "The default step size learns slowly on a short budget."
refused overnight propose --set learning_rate=7 --because "A cheat: far outside the declared range."
step overnight candidates
step overnight ledger verify
step overnight status
