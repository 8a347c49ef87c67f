# Makes .venv from a hashed lock file. Sourced by ./mainstem and ./test, which share one .venv: the lock file
# "dev" contains all of "spark", and "spark" all of "runtime", so a development environment also serves ./mainstem.
#
# What it must never do: leave a half-made environment that looks whole. A stamp (a copy of the lock file) is
# written as the very last step, and a note of unfinished work makes the next use start over. Spark is added to an
# environment that serves already and goes on serving, whatever becomes of the addition.

say() { printf 'mainstem: %s\n' "$*" >&2; }

fail() {
    say "$*"
    exit 1
}

is_debian_root() { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; }

# apt_install PACKAGE...: the package lists are fetched only when the packages are not known yet.
apt_install() {
    local options=(-qq -y -o Dpkg::Use-Pty=0 --no-install-recommends)
    export DEBIAN_FRONTEND=noninteractive
    apt-get "${options[@]}" install "$@" >/dev/null 2>&1 && return
    apt-get -qq update >&2 && apt-get "${options[@]}" install "$@" >&2
}

# apt_offers PACKAGE: whether it could be installed. To be known is not enough: others may only refer to it.
apt_offers() { apt-get -qq --simulate install "$1" >/dev/null 2>&1; }

# find_python: prints a Python of at least 3.11, one that can make environments if there is one.
find_python() {
    local name check
    for check in 'import sys, ensurepip, venv' 'import sys'; do
        for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
            if "$name" -c "$check; sys.exit(sys.version_info < (3, 11))" >/dev/null 2>&1; then
                printf '%s\n' "$name"
                return
            fi
        done
    done
    fail "Python 3.11 or newer is needed and was not found: install it (Debian, Ubuntu: apt install python3 python3-venv)"
}

is_stamped() { cmp -s "$root/requirements/$1.txt" "$root/.venv/mainstem-$1.stamp" && [[ -x $root/.venv/bin/python ]]; }

# make_virtualenv PYTHON: an empty environment with pip, or the existing one if it is sound.
make_virtualenv() {
    local python=$1 version
    if [[ ! -e $root/.venv/mainstem-unfinished ]] &&
        "$root/.venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null &&
        { "$root/.venv/bin/python" -c 'import pip' || "$root/.venv/bin/python" -m ensurepip; } >/dev/null 2>&1; then
        return
    fi
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
        is_debian_root || fail "$version cannot make environments here: install its venv module (Debian, Ubuntu: apt install python3-venv)"
        say "installing $version-venv"
        apt_install "$version-venv" || fail "could not install $version-venv: run 'apt install python3-venv' and try again"
    fi
    rm -rf "$root/.venv"
    "$python" -m venv "$root/.venv" || fail "$python could not make $root/.venv (see above)"
}

# pip_install KIND PIP-ARGUMENT...: what the lock file names, in two parts beside each other, for pip uses one core.
# PySpark, which is built from its source package, takes as long as a third of the rest.
pip_install() {
    local kind=$1 parts=$root/.venv/mainstem-lock status=0 beside
    shift
    rm -rf "$parts"
    mkdir "$parts"
    : >"$parts/one"
    : >"$parts/other"
    awk -v parts="$parts" '
        /^[^ #]/ { part = /^pyspark==/ || ++others % 3 == 0 ? "one" : "other" }
        part { print >(parts "/" part) }' "$root/requirements/$kind.txt"
    pip_install_part "$parts/one" "$@" &
    beside=$!
    pip_install_part "$parts/other" "$@" || status=$?
    wait "$beside" || status=$?
    rm -rf "$parts"
    ((status == 0)) || fail "could not install requirements/$kind.txt (see above): check the network and try again"
}

pip_install_part() {
    local lock=$1
    shift
    [[ -s $lock ]] || return 0
    "$root/.venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
        --require-hashes -r "$lock" "$@" >&2
}

# add_spark: into the environment as it is.
add_spark() {
    local note=$root/.venv/mainstem-spark-unfinished again=()
    say "adding Spark to .venv from requirements/spark.txt (once, half a gigabyte, a few minutes) ..."
    # What a broken-off addition left behind may look installed.
    [[ ! -e $note ]] || again=(--force-reinstall)
    : >"$note"
    pip_install spark ${again[@]+"${again[@]}"}
    cp "$root/requirements/spark.txt" "$root/.venv/mainstem-spark.stamp"
    rm -f "$note"
}

# make_environment ROOT runtime|spark|dev
make_environment() {
    root=$1
    local kind=$2 python
    python=$(find_python) || exit 1
    # One process at a time. Python takes the lock on a file that this shell holds open, so the kernel lets it go
    # whatever happens to the shell.
    exec 9>"$root/.venv.lock"
    "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
    if ! is_stamped "$kind" && [[ $kind == spark ]] && is_stamped runtime; then
        add_spark
    elif ! is_stamped "$kind"; then
        say "making .venv from requirements/$kind.txt (once, about a minute) ..."
        rm -f "$root"/.venv/mainstem-*.stamp
        make_virtualenv "$python"
        : >"$root/.venv/mainstem-unfinished"
        pip_install "$kind"
        # The sources are used where they stand; a relative path survives moving the checkout.
        local site_packages
        site_packages=$(echo "$root"/.venv/lib/python3.*/site-packages)
        echo ../../../../src >"$site_packages/mainstem-src.pth"
        cp "$root/src/mainstem-pyspark.pth" "$site_packages"
        # Compiled now: where writing bytecode is switched off, every start would compile the sources again.
        "$root/.venv/bin/python" -m compileall -q "$root/src" >&2 || true
        rm -f "$root/.venv/mainstem-unfinished"
        [[ $kind != dev ]] || cp "$root/requirements/spark.txt" "$root/.venv/mainstem-spark.stamp"
        [[ $kind == runtime ]] || cp "$root/requirements/runtime.txt" "$root/.venv/mainstem-runtime.stamp"
        cp "$root/requirements/$kind.txt" "$root/.venv/mainstem-$kind.stamp"
    fi
    exec 9>&-
}

# java_version: the major version of the Java that Spark would start, 0 if there is none.
java_version() {
    local java=java version
    [[ -z ${JAVA_HOME:-} ]] || java=$JAVA_HOME/bin/java
    version=$("$java" -version 2>&1) && [[ $version =~ version\ \"([0-9]+) ]] || { echo 0; return; }
    echo "${BASH_REMATCH[1]}"
}

# need_java: Spark runs on Java 17 or later. Where this may install it, it does.
need_java() {
    local package
    (($(java_version) < 17)) || return 0
    [[ -z ${JAVA_HOME:-} ]] ||
        fail "Spark needs Java 17 or later, and JAVA_HOME ($JAVA_HOME) has none: set it to a newer one, or unset it"
    is_debian_root ||
        fail "Spark needs Java 17 or later, which was not found: install it (Debian, Ubuntu: apt install default-jre-headless)"
    apt_offers default-jre-headless || apt-get -qq update >&2 || true
    for package in openjdk-21-jre-headless openjdk-17-jre-headless default-jre-headless; do
        ! apt_offers "$package" || break
    done
    say "installing $package, which Spark runs on (once) ..."
    apt_install "$package" && (($(java_version) >= 17)) ||
        fail "could not install Java 17 or later: install it (apt install openjdk-17-jre-headless) and try again"
}
