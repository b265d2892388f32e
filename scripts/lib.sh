# Shared by the scripts of this folder; sourced, not run. Needs bash, and Debian's dpkg and apt.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LOGS=$ROOT/build/logs
PROGRESS=${PROGRESS:-1} # the file descriptor for what a person reads: scripts/run says 2, its output belongs to the program
JOBS=${JOBS:-$(nproc)}
mkdir -p "$LOGS"

say() { printf '%s\n' "$*" >&"$PROGRESS"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Microseconds since the epoch. (Some locales write the fraction after a comma.)
now() { printf '%s' "${EPOCHREALTIME/[.,]/}"; }
# now-style difference -> "6.1"
seconds() { printf '%d.%d' $(($1 / 1000000)) $(($1 / 100000 % 10)); }
# now-style difference -> "1 min 2 s"
minutes() { if (($1 >= 60000000)); then printf '%d min %d s' $(($1 / 60000000)) $(($1 / 1000000 % 60)); else printf '%s s' "$(seconds "$1")"; fi; }

# The line that moves while a long step runs; only on a terminal. Shows ninja's own count when the log has one.
ticker() { # <text> <log>
  local begin count
  begin=$(now)
  while sleep 0.5; do
    count=$(tail -c 4000 "$2" 2>/dev/null | grep -oE '^\[[0-9]+/[0-9]+\]' | tail -n 1) || count=
    printf '\r\033[K%s … %d s %s' "$1" $((($(now) - begin) / 1000000)) "$count" >&"$PROGRESS"
  done
}

# Runs a command with its output in a log. Sets STEP_TIME (microseconds) and STEP_LOG; returns the command's status. Prints nothing that
# stays: the caller knows what to say. The command may be a function; inside it `set -e` is off, so chain with &&.
quietly() { # <text> <command...>
  local text=$1 begin status=0 moving=
  shift
  STEP_LOG=$LOGS/${text//[^A-Za-z0-9.]/-}.log
  begin=$(now)
  : >"$STEP_LOG"
  if [[ -t $PROGRESS ]]; then
    ticker "$text" "$STEP_LOG" &
    moving=$!
  fi
  "$@" >"$STEP_LOG" 2>&1 </dev/null || status=$?
  if [[ -n $moving ]]; then
    kill "$moving" 2>/dev/null || true
    wait "$moving" 2>/dev/null || true
    printf '\r\033[K' >&"$PROGRESS"
  fi
  STEP_TIME=$(($(now) - begin))
  return "$status"
}

# The end of a failed step's log, and where the rest is.
show_log() { # [lines]
  tail -n "${1:-40}" "$STEP_LOG" | sed 's/^/    /' >&"$PROGRESS"
  say "    (all of it: ${STEP_LOG#"$ROOT"/})"
}

# A step that must succeed: one line when it took a while, the end of its log when it failed.
step() { # <text> <command...>
  if quietly "$@"; then
    if ((STEP_TIME >= 2000000)); then say "$1 … $(seconds "$STEP_TIME") s"; fi
  else
    local status=$?
    say "$1 … failed after $(seconds "$STEP_TIME") s"
    show_log
    return "$status"
  fi
}

# Names from scripts/packages for these needs (build, test, all) that dpkg does not have.
missing_packages() { # <need...>
  local wanted
  wanted=$(awk -v needs=" $* " '!/^#/ && NF == 2 && index(needs, " " $1 " ") { print $2 }' "$ROOT/scripts/packages")
  # shellcheck disable=SC2086 # one word per package
  comm -23 <(sort -u <<<"$wanted") \
    <(dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null | awk '$2 == "installed" { print $1 }' | sort -u)
}

install_packages() { # <need...>
  local missing
  missing=$(missing_packages "$@" | tr '\n' ' ')
  [[ -n ${missing// /} ]] || return 0
  local -a as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "these packages are missing; as root: apt-get install ${missing}"
    as_root=(sudo)
  fi
  # Debian starts a server as soon as it is installed, unless this file forbids it. The tests start their own, with their own data.
  local policy=/usr/sbin/policy-rc.d
  # shellcheck disable=SC2086 # one word per package
  apt_install() ( # a subshell: its end, however it comes, gives the machine its own rule back
    export DEBIAN_FRONTEND=noninteractive
    local -a options=(-q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    if [[ ! -e $policy ]]; then
      trap '"${as_root[@]}" rm -f "$policy"' EXIT
      printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null && "${as_root[@]}" chmod 755 "$policy" || return
    fi
    "${as_root[@]}" apt-get "${options[@]}" update &&
      "${as_root[@]}" apt-get "${options[@]}" install --no-install-recommends "$@"
  )
  # shellcheck disable=SC2086
  step "installing packages" apt_install $missing || return
  # What a build directory found, or did not find, may no longer be true.
  rm -f "$ROOT"/build/*/.configured
}

# What a time namespace must add to the monotonic clock so that it shows this many seconds.
monotonic_offset() { # <seconds>
  local uptime
  read -r uptime _ </proc/uptime
  printf '%d' $(($1 - ${uptime%.*}))
}

# Where a preset is built. Two presets may share a directory; the second adds targets to the first.
directory_of() { # <preset>
  case $1 in
    test) printf '%s' "$ROOT/build/release" ;;
    fuzz) printf '%s' "$ROOT/build/asan" ;;
    *) printf '%s' "$ROOT/build/$1" ;;
  esac
}

# Configures when needed and builds, one at a time per directory: two ninjas in one directory would step on each other.
build_preset() { # <preset> [build arguments...]
  local preset=$1 directory
  directory=$(directory_of "$1")
  shift
  mkdir -p "$directory"
  (
    cd "$ROOT" && flock 9 || exit 1
    local stamp=$directory/.configured configured=
    if [[ -f $directory/build.ninja && -f $stamp && ! CMakePresets.json -nt $stamp ]]; then configured=$(<"$stamp"); fi
    # The stamp holds the preset and the place: a copied or moved tree has to be configured anew.
    case $configured in
      "$preset $ROOT") ;;
      "test $ROOT") [[ $preset == release ]] || exit 1 ;; # it has all that release has
      "release $ROOT") cmake --preset "$preset" && printf '%s' "$preset $ROOT" >"$stamp" || exit 1 ;;
      *) cmake --fresh --preset "$preset" && printf '%s' "$preset $ROOT" >"$stamp" || exit 1 ;;
    esac
    cmake --build --preset "$preset" -j "$JOBS" "$@"
  ) 9>"$directory/.lock"
}
