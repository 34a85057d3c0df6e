# shellcheck shell=bash disable=SC2034 # the hooks use what is set here
# What the hooks and the entrypoint share: paths, locks, how to find the server, how to read its position.
# Nothing here decides who seeds or who joins: the operator does, and asks through the hooks.

RUN_DIR=/run/mysqld                      # an emptyDir: gone with the pod, kept over a container restart
VOLUME=/var/lib/mysql                    # the claim
DATA_DIR=$VOLUME/data                    # one level down, so that an initialised directory can be renamed into place
INIT_DIR=$VOLUME/initialising
DATA_LOCK=$VOLUME/data.lock              # held by whatever process has the data directory open
CONFIG=/etc/windlass-galera/my.cnf
SOCKET=$RUN_DIR/mysqld.sock
REQUESTS=$RUN_DIR/requests               # fifo: hooks write, the entrypoint reads
START_LOCK=$RUN_DIR/start.lock           # held by seed or primary from their first step to their last
EPOCH_FILE=$RUN_DIR/epoch                # the highest epoch that a hook was given in this pod
STOP_COUNT=$RUN_DIR/stops                # a start that was overtaken by a stop must not happen
SERVER_FILE=$RUN_DIR/server              # "ID MODE PID" of the last server the entrypoint started
EXITED_FILE=$RUN_DIR/exited              # "ID CODE" of the last server that ended
REFUSED_FILE=$RUN_DIR/refused            # "ID WHY" of the last request that was refused
READY_FILE=$RUN_DIR/reached-synced       # "PID" of a server that was seen Synced once
ACCOUNTS_DIR=${ACCOUNTS_DIR:-/etc/rss/secrets/galera-accounts}
ADMIN=mysql                              # the name of uid 10000, let in through the socket by unix_socket
ZERO_HISTORY=00000000-0000-0000-0000-000000000000

# Exit codes of the status hook (7 and 8 are the OCF ones).
CODE_UNANSWERED=4
CODE_STARTING=190
CODE_STOPPED=7
CODE_PRIMARY=8
CODE_NOT_PRIMARY=9
# Exit code of any hook that found another one at work: nothing was done, ask again.
CODE_BUSY=75
# Exit code of a hook that was sent by an operator whose place another one has taken: nothing was done.
CODE_FENCED=76

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
give_up() { local code=$1; shift; say "$@"; exit "$code"; }

# Replaces a small file in one step, so that no reader sees half of it.
write_file() { printf '%s\n' "$2" >"$1.new" && mv -f "$1.new" "$1"; }

# Refuses a hook of an operator whose place another one has taken. The operator writes "epoch N" on the standard input, and N
# grows with each take-over. A pipe that ends without it is a caller that went away; without a pipe, a person runs the hook.
check_epoch() {
    local word='' epoch='' seen=0
    [[ -p /dev/stdin ]] || return 0
    { read -r -t 30 word epoch && [[ $word == epoch && $epoch =~ ^[0-9]{1,18}$ ]]; } \
        || give_up "$CODE_FENCED" 'refused: the standard input ended before it said "epoch N"'
    exec 7>>"$EPOCH_FILE.lock"
    flock 7
    { read -r seen <"$EPOCH_FILE"; } 2>/dev/null || seen=0
    ((epoch >= seen)) || give_up "$CODE_FENCED" "refused: this comes from epoch $epoch, and epoch $seen was seen in this pod"
    write_file "$EPOCH_FILE" "$epoch"
    exec 7>&-
}

# --- processes -------------------------------------------------------------------------------------

# Sets SERVER_PID to the live server started by the entrypoint, and OTHER_PIDS to every other live mariadbd
# (a position recovery, an initialisation). Read from /proc: a pid file can outlive what it names.
find_servers() {
    local directory name state parent argument
    local -a arguments
    SERVER_PID='' OTHER_PIDS=()
    for directory in /proc/[0-9]*; do
        { read -r name <"$directory/comm"; } 2>/dev/null || continue
        [[ $name == mariadbd ]] || continue
        { read -r _ _ state parent _ <"$directory/stat"; } 2>/dev/null || continue
        [[ $state != [ZX] ]] || continue
        { mapfile -d '' arguments <"$directory/cmdline"; } 2>/dev/null || continue
        for argument in "${arguments[@]}"; do
            if [[ $argument == --wsrep-recover || $argument == --bootstrap ]]; then
                OTHER_PIDS+=("${directory#/proc/}")
                continue 2
            fi
        done
        # A child of the server that has not yet become its state transfer script is not a server.
        [[ $parent == 1 ]] && SERVER_PID=${directory#/proc/}
    done
    return 0
}

# True while a seed or primary hook is at work, be it one whose caller went away.
start_hook_at_work() {
    [[ -e $START_LOCK ]] && ! flock --nonblock --shared "$START_LOCK" true
}

# Makes this process the only start hook. A status probe may hold the lock for a moment, hence the wait.
become_start_hook() {
    exec 9>"$START_LOCK"
    flock --wait 3 9 || give_up "$CODE_BUSY" "another seed or primary hook is still at work in this pod; ask status until it ends"
    STOPS_AT_START=$(stop_count)
}

stop_count() { if [[ -s $STOP_COUNT ]]; then cat "$STOP_COUNT"; else echo 0; fi; }

# --- SQL -------------------------------------------------------------------------------------------

# Runs the statements given on standard input as the local administrator. Locks are not handed to the client.
run_sql() {
    timeout --kill-after=1 "${1:-2}" mariadb --no-defaults --protocol=socket --socket="$SOCKET" --user="$ADMIN" \
        --connect-timeout=2 --batch --skip-column-names 8>&- 9>&-
}

# Fills WSREP with the server's own report. Fails when the server does not answer.
declare -A WSREP
read_wsrep() {
    local name value
    WSREP=()
    while IFS=$'\t' read -r name value; do WSREP[$name]=$value; done < <(run_sql 2 2>/dev/null <<'SQL'
SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_cluster_status', 'wsrep_ready', 'wsrep_local_state',
  'wsrep_local_state_comment', 'wsrep_cluster_state_uuid', 'wsrep_local_state_uuid', 'wsrep_last_committed', 'wsrep_cluster_size');
SQL
    )
    [[ -n ${WSREP[wsrep_cluster_status]-} ]]
}

# Sets CODE and MEANING: what the status hook answers.
assess() {
    local reached=''
    find_servers
    if [[ -z $SERVER_PID ]]; then
        if start_hook_at_work; then
            CODE=$CODE_STARTING MEANING='a seed or primary hook is preparing a start'
        else
            CODE=$CODE_STOPPED MEANING='no server runs'
        fi
        return
    fi
    if ! read_wsrep; then
        { read -r reached <"$READY_FILE"; } 2>/dev/null || true
        if [[ $reached == "$SERVER_PID" ]]; then
            CODE=$CODE_UNANSWERED MEANING='the server runs, was Synced before, and does not answer'
        else
            CODE=$CODE_STARTING MEANING='the server runs and does not take connections yet (starting or receiving a state transfer)'
        fi
        return
    fi
    MEANING="cluster ${WSREP[wsrep_cluster_status]}, member ${WSREP[wsrep_local_state_comment]-unknown}, ready ${WSREP[wsrep_ready]-unknown}"
    if [[ ${WSREP[wsrep_cluster_status]} != Primary ]]; then
        if [[ ! -e $READY_FILE ]] && start_hook_at_work; then CODE=$CODE_STARTING; else CODE=$CODE_NOT_PRIMARY; fi
    elif [[ ${WSREP[wsrep_ready]-} == ON && ${WSREP[wsrep_local_state]-} == [24] ]]; then
        # 4 is Synced; 2 is Donor, which goes on serving because the transfer is made by mariabackup.
        CODE=$CODE_PRIMARY
    else
        CODE=$CODE_STARTING
    fi
}

# ask_to_end PID: one step towards an orderly end of the server; true once it was told. Call it until the server is gone.
# A server that does not yet take connections loses the signal and lives on, deaf, as a member of the cluster. Its way
# out is the failure of its state transfer, or the end of its start.
ask_to_end() {
    local reached='' process
    { read -r reached <"$READY_FILE"; } 2>/dev/null || true
    if [[ $reached == "$1" ]] || read_wsrep; then
        kill -TERM "$1" 2>/dev/null
        return 0
    fi
    for process in $(pgrep -s "$1"); do
        [[ $process == "$1" ]] || kill -TERM "$process" 2>/dev/null || true
    done
    return 1
}

# --- the position of a stopped member --------------------------------------------------------------

# Sets KIND (none, clean, recovered), HISTORY, SEQUENCE, SAFE and, for none, VACANT: yes when there is nothing in
# the directory that could be anybody's data, never-joined when it was never part of a cluster, no otherwise.
# Fails the whole hook when the answer cannot be known: a made-up position is how clusters lose data.
read_position() {
    local state=$DATA_DIR/grastate.dat key value
    KIND=none HISTORY='' SEQUENCE='' SAFE=false VACANT=no
    if [[ ! -d $DATA_DIR ]] || directory_is_vacant; then VACANT=yes; return; fi
    [[ -r $DATA_DIR && -x $DATA_DIR ]] || give_up 1 "the data directory $DATA_DIR cannot be read; look at its owner and mode"
    if [[ ! -e $state ]]; then
        [[ -d $DATA_DIR/mysql ]] && VACANT=never-joined
        return
    fi
    [[ -r $state ]] || give_up 1 "$state cannot be read; look at its owner and mode"
    while read -r key value; do
        case $key-$value in
            uuid:-*) HISTORY=$value ;;
            seqno:-*) SEQUENCE=$value ;;
            safe_to_bootstrap:-1) SAFE=true ;;
        esac
    done <"$state"
    # Galera empties the file when a state transfer begins, and writes zeros when it must not trust its own data.
    if ! grep -q '[^[:space:]]' "$state" || [[ $HISTORY == "$ZERO_HISTORY" ]]; then
        HISTORY='' SEQUENCE='' SAFE=false
        return
    fi
    [[ $HISTORY =~ ^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$ && $SEQUENCE =~ ^-?[0-9]{1,18}$ ]] \
        || give_up 1 "$state holds no readable uuid and seqno; the position of this member is unknown"
    # A zero-filled or half-copied directory under a good grastate.dat is for a person to look at.
    [[ -d $DATA_DIR/mysql ]] || give_up 1 "$state names history $HISTORY but $DATA_DIR/mysql is missing; the position of this member is unknown"
    if ((SEQUENCE >= 0)); then KIND=clean; else recover_position; fi
}

# Only what a server leaves behind that never received anything counts as nothing.
directory_is_vacant() {
    local entry
    for entry in "$DATA_DIR"/* "$DATA_DIR"/.[!.]*; do
        [[ -e $entry || -L $entry ]] || continue
        case ${entry##*/} in
            galera.cache | gcache.page.* | gvwstate.dat | wsrep_sst.pid) ;;
            grastate.dat)
                # A history in it means that there was data here once: then this is no vacant directory.
                if grep -q '^uuid:' "$entry" && ! grep -q "^uuid: *$ZERO_HISTORY" "$entry"; then return 1; fi ;;
            *) return 1 ;;
        esac
    done
    return 0
}

# Asks InnoDB, with the whole configuration and with the directory held exclusively.
recover_position() {
    local log found expected=$HISTORY
    find_servers
    [[ -z $SERVER_PID ]] || give_up 1 "the server started meanwhile; ask again"
    log=$(mktemp /tmp/recover.XXXXXX)
    exec 8>"$DATA_LOCK"
    flock --wait 20 8 || give_up "$CODE_BUSY" "the data directory is in use by another process; ask again"
    if ! mariadbd --defaults-file="$CONFIG" --wsrep-recover --skip-networking --socket=/tmp/recover.sock \
        --pid-file=/tmp/recover.pid >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        give_up 1 "mariadbd --wsrep-recover failed (its last lines are above); the position of this member is unknown"
    fi
    exec 8>&-
    found=$(sed -n 's/.*WSREP: Recovered position: *\([0-9a-f-]\{36\}:-\{0,1\}[0-9]\{1,18\}\).*/\1/p' "$log" | tail -n 1)
    rm -f "$log"
    [[ -n $found ]] || give_up 1 "mariadbd --wsrep-recover told no position; the position of this member is unknown"
    HISTORY=${found%%:*} SEQUENCE=${found#*:} KIND=recovered
    if [[ $HISTORY != "$expected" ]] || ((SEQUENCE < 0)); then
        give_up 1 "grastate.dat names history $expected but InnoDB answers $found; the position of this member is unknown"
    fi
}

# --- starting --------------------------------------------------------------------------------------

# request_start MODE POSITION|- ADDRESS: has the entrypoint start the server. Sets REQUEST.
request_start() {
    local waited=0
    until [[ -p $REQUESTS ]]; do
        ((waited++ < 50)) || give_up 1 "the entrypoint does not take requests (no $REQUESTS)"
        sleep 0.2
    done
    REQUEST=$$-$SRANDOM
    printf 'start\t%s\t%s\t%s\t%s\t%s\n' "$REQUEST" "$STOPS_AT_START" "$1" "$2" "$3" 1<>"$REQUESTS"
}

# Waits until the server of REQUEST serves in the primary component. The caller's timeout is the only limit:
# a state transfer takes as long as the data is large.
wait_until_synced() {
    local id rest
    while :; do
        if { read -r id rest <"$REFUSED_FILE"; } 2>/dev/null && [[ $id == "$REQUEST" ]]; then
            give_up 1 "the start was refused: $rest"
        fi
        if { read -r id rest <"$EXITED_FILE"; } 2>/dev/null && [[ $id == "$REQUEST" ]]; then
            give_up 1 "the server ended with code $rest before it was Synced; its reasons are in the log of the container"
        fi
        assess
        case $CODE in
            "$CODE_PRIMARY") write_file "$READY_FILE" "$SERVER_PID"; return 0 ;;
            "$CODE_NOT_PRIMARY") give_up 1 "the server runs outside the primary component ($MEANING); stop or promote it" ;;
        esac
        sleep 0.3
    done
}
