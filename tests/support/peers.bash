# Gets the peers of the tests: Apache Kafka and Spark's own Kafka connector (their jars, through Maven, into
# .peers/), the source package of kafka-python, and kcat. Sourced by ./test after requirements/environment.bash, whose say, fail, is_debian_root
# and apt_install it uses.
# Nothing is downloaded that is already here.

KAFKA_VERSION=4.3.0
SPARK_VERSION=4.2.0

# has_java: Java 17 with its compiler, which the tests need to run Kafka's own classes.
has_java() {
    local version
    command -v javac >/dev/null || return 1
    version=$(java -version 2>&1) || return 1
    [[ $version =~ version\ \"([0-9]+) ]] && ((BASH_REMATCH[1] >= 17))
}

# missing_programs ROOT: Debian's package names of what is not here.
missing_programs() {
    if ! has_java; then
        if apt-cache show openjdk-17-jdk-headless >/dev/null 2>&1; then
            echo openjdk-17-jdk-headless
        else
            echo default-jdk-headless
        fi
    fi
    [[ -d $1/.peers/kafka-$KAFKA_VERSION && -d $1/.peers/spark-connector-$SPARK_VERSION ]] ||
        command -v mvn >/dev/null || echo maven
    command -v kcat >/dev/null || echo kcat
}

# get_jars ROOT FOLDER POM WHAT MAVEN-ARGUMENT...
get_jars() {
    local folder=$1/.peers/$2 pom=$1/tests/support/$3 what=$4
    [[ ! -d $folder ]] || return 0
    say "getting $what through Maven into .peers/ (once) ..."
    mkdir -p "$1/.peers"
    rm -rf "$folder".part.*
    shift 4
    # Copied beside and renamed, so that a folder with the final name is always whole.
    mvn --quiet --batch-mode -Dstyle.color=never -f "$pom" "$@" \
        dependency:copy-dependencies -DoutputDirectory="$folder.part.$$" >&2 ||
        fail "Maven could not get $what (see above): check the network, or run ./test --quick"
    mv "$folder.part.$$" "$folder"
}

get_kafka() {
    get_jars "$1" "kafka-$KAFKA_VERSION" kafka-pom.xml "Apache Kafka $KAFKA_VERSION" -Dkafka.version="$KAFKA_VERSION"
}

get_spark_connector() {
    get_jars "$1" "spark-connector-$SPARK_VERSION" spark-connector-pom.xml \
        "the Kafka connector of Spark $SPARK_VERSION" -Dspark.version="$SPARK_VERSION"
}

# Its tests are run here, so it must be the version that the lock file pins.
get_kafka_python() {
    local root=$1 lock=$1/requirements/dev.txt version folder part
    version=$(sed -n 's/^kafka-python==\([^ ]*\).*/\1/p' "$lock")
    folder=$root/.peers/kafka-python-$version
    [[ ! -d $folder ]] || return 0
    say "getting the source of kafka-python $version into .peers/ (once) ..."
    part=$folder.part.$$
    rm -rf "$folder".part.*
    mkdir -p "$part/source"
    sed -n '/^kafka-python==/,/^ *#/{/^ *#/!p}' "$lock" >"$part/lock.txt"
    "$root/.venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-input --no-deps \
        --no-binary kafka-python --require-hashes -r "$part/lock.txt" --dest "$part" >&2 ||
        fail "could not get the source of kafka-python $version (see above): check the network, or run ./test --quick"
    tar -xzf "$part"/kafka*.tar.gz -C "$part/source" --strip-components=1
    mv "$part/source" "$folder"
    rm -rf "$part"
}

# make_spark_archive ROOT: what makes every Spark of the tests start in half the time.
make_spark_archive() {
    local said
    said=$("$1/.venv/bin/python" -m tests.support.spark_java 2>&1) ||
        fail "could not make the archive of Spark's classes: $said"
}

# get_java_peers ROOT: needs no environment.
get_java_peers() {
    local root=$1 missing
    mapfile -t missing < <(missing_programs "$root")
    if ((${#missing[@]} > 0)); then
        is_debian_root ||
            fail "the peers of the tests need ${missing[*]}: install them (apt install ${missing[*]}), or run ./test --quick"
        [[ ${missing[*]} != *-jdk-* ]] || apt-get -qq update >&2 || true
        mapfile -t missing < <(missing_programs "$root")
        say "installing ${missing[*]}"
        apt_install "${missing[@]}" || fail "could not install ${missing[*]} (see above), or run ./test --quick"
    fi
    get_kafka "$root"
    get_spark_connector "$root"
}

# get_python_peers ROOT: needs the environment and Java.
get_python_peers() {
    get_kafka_python "$1"
    make_spark_archive "$1"
}
