#!/usr/bin/env bash
# Brings every third-party client that the compatibility suite runs into .cache/ of this checkout:
# Apache Kafka 4.3.1 and 3.9.1 (server, tools, clients), its Connect with MirrorMaker 2, kafka-clients 4.4.0, Kafka Streams, the Java
# and Go programs, kcat;
# the ZooKeeper server that the tests of clusters start, the jars that Spark needs for the pipeline, and, for its connectors,
# JDBC drivers and Debian's MariaDB.
# Needs: java and javac 17, mvn, uv. Running it again does only what has changed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
cache=$root/.cache
sources=$root/third_party_clients
mkdir -p "$cache"

# fresh STAMP INPUT...: succeeds if STAMP was made from exactly these inputs.
fingerprint() { cat "$@" | sha256sum | cut -d' ' -f1; }
fresh() { local stamp=$1; shift; [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint "$@")" ]; }
seal() { local stamp=$1; shift; fingerprint "$@" > "$stamp"; }

# again COMMAND...: for what comes over a network, which is away for a moment now and then.
again() {
  local attempt
  for attempt in 1 2; do
    "$@" && return
    echo "that failed; it is tried again in $((attempt * 10)) s: $*" >&2
    sleep $((attempt * 10))
  done
  "$@"
}

fetch_jars() { # POM DIRECTORY [MAVEN OPTION...]
  local pom=$1 directory=$2; shift 2
  fresh "$directory/.ok" "$pom" && return
  rm -rf "$directory"
  again mvn -q -B -f "$pom" "$@" dependency:copy-dependencies \
    -DoutputDirectory="$directory" -DincludeScope=runtime -DskipTests
  seal "$directory/.ok" "$pom"
}

install_debian_packages() {
  local missing=()
  command -v kcat > /dev/null || missing+=(kcat)
  [ -e /usr/include/librdkafka/rdkafka.h ] || missing+=(librdkafka-dev)
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  again "${as_root[@]}" apt-get update -qq
  again "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# Its package would start a server too, so that it is unpacked and not installed.
unpack_mariadb() {
  local folder=$cache/mariadb fresh=$cache/mariadb.new package
  [ -x "$folder/usr/sbin/mariadbd" ] && return
  rm -rf "$folder" "$fresh"
  mkdir "$fresh"
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  again "${as_root[@]}" apt-get update -qq
  cd "$fresh"
  again apt-get download -qq mariadb-server-core mariadb-client-core mariadb-common libmariadb3 libaio1 liburing2
  for package in *.deb; do
    dpkg-deb -x "$package" .
    rm "$package"
  done
  cd "$root"
  mv "$fresh" "$folder"
}

build_program() { # SOURCES JARS CLASSES
  local files=("$sources/$1"/src/*.java) classes=$cache/$3
  fetch_jars "$sources/$1/pom.xml" "$cache/$2"
  fresh "$classes/.ok" "${files[@]}" && return
  mkdir -p "$classes"
  javac -d "$classes" -cp "$cache/$2/*" "${files[@]}"
  seal "$classes/.ok" "${files[@]}"
}

build_java() {
  local version classes
  for version in 4.3.1 3.9.1; do
    fetch_jars "$sources/kafka/pom.xml" "$cache/kafka-$version" -Dkafka.version=$version
    classes=$cache/tool-runner-$version
    fresh "$classes/.ok" "$sources/kafka/ToolRunner.java" && continue
    mkdir -p "$classes"
    javac -d "$classes" -cp "$cache/kafka-$version/*" "$sources/kafka/ToolRunner.java"
    seal "$classes/.ok" "$sources/kafka/ToolRunner.java"
  done
  fetch_jars "$sources/kafka-tier/pom.xml" "$cache/kafka-tier-4.3.1"
  fetch_jars "$sources/connect/pom.xml" "$cache/connect-4.3.1"
  fetch_jars "$root/src/headrace/testing/zookeeper.pom.xml" "$cache/zookeeper"
  fetch_jars "$root/src/headrace/spark/pom.xml" "$cache/spark-jars"
  fetch_jars "$sources/jdbc/pom.xml" "$cache/jdbc"
  build_program java java-client java-program
  build_program streams streams streams-program
}

# shellcheck source=tests/find_go.sh
source tests/find_go.sh

build_go() {
  # Only one compiler may write the binaries; Go itself knows what is up to date.
  local go
  read -ra go <<< "$(find_go)"
  (cd "$sources/go" && GOFLAGS=-mod=readonly again "${go[@]}" build -buildvcs=false -o "$cache/go/" ./franz ./sarama)
}

(
  flock 9
  install_debian_packages
  unpack_mariadb
  build_java
  mkdir -p "$cache/go"
  build_go
) 9> "$cache/setup.lock"
