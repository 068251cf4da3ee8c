#!/bin/bash
# Shows a flight log of a Slurm job: munge, slurmctld and slurmd on this machine, with the TaskProlog and the Epilog that are shipped.
# Four tasks of a job leave a record each, the Epilog makes one table of them, and reduce compares them. As root.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=$(mktemp -d)
chmod 755 "$work"
jobs_=()
cleanup() {
	local status=$?
	[ "$status" = 0 ] || tail -n 20 "$work"/*.log >&2
	kill "${jobs_[@]}" 2>/dev/null || true # some have ended
	wait
	rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "slurm: $*" >&2; exit 1; }

start() { # NAME COMMAND...
	local name=$1
	shift
	"$@" >"$work/$name.log" 2>&1 &
	jobs_+=($!)
}

# until COMMAND...: until it succeeds, 20 s at most.
until_ok() {
	for _ in $(seq 200); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.1
	done
	fail "no success within 20 s: $*"
}

mkdir "$work/munge" "$work/state" "$work/spool" "$work/bin"
mkdir -m 1777 "$work/logs"
dd if=/dev/urandom of="$work/munge/key" bs=1024 count=1 status=none
chmod 600 "$work/munge/key"
install -m 755 bin/gpumemtop bin/examples/tiny bin/examples/train "$work/bin"
bin/gpumemtop library -o "$work/bin/libgpumemtop.so" >/dev/null
chmod 755 "$work/bin/libgpumemtop.so"

# The scripts as they are shipped, with the places that an administrator would edit.
for script in task-prolog epilog; do
	sed "s#/shared/gpumemtop/libgpumemtop.so#$work/bin/libgpumemtop.so#; s#/shared/gpumemtop/logs#$work/logs#; s#/usr/bin/gpumemtop#$work/bin/gpumemtop#" \
		"packaging/slurm/$script.sh" >"$work/bin/$script.sh"
	chmod 755 "$work/bin/$script.sh"
done

host=$(hostname -s)
cat >"$work/slurm.conf" <<EOF
ClusterName=here
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
TaskProlog=$work/bin/task-prolog.sh
Epilog=$work/bin/epilog.sh
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP OverSubscribe=YES
SlurmdParameters=config_overrides
EOF
export SLURM_CONF=$work/slurm.conf

start munged munged --foreground --force --socket="$work/munge/socket" --key-file="$work/munge/key" \
	--pid-file="$work/munge/pid" --log-file="$work/munge.log" --seed-file="$work/munge/seed"
until_ok test -S "$work/munge/socket"
start slurmctld slurmctld -D -f "$work/slurm.conf"
start slurmd slurmd -D -f "$work/slurm.conf"
until_ok sh -c 'sinfo -h -o %t | grep -q idle'

# The ranks differ: task 3 trains for longer, with as much memory.
srun -n 4 --job-name ranks sh -c "$work/bin/train \$((5 + SLURM_PROCID))" >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "srun failed"; }
[ "$(grep -c . "$work/out")" -ge 4 ] || fail "the tasks wrote $(cat "$work/out")"
job=$(ls "$work/logs")
[ "$(ls "$work/logs/$job"/*.flight | wc -l)" = 4 ] || fail "$(ls -l "$work/logs/$job")"
until_ok test -s "$work/logs/$job/job.parquet"
bin/gpumemtop reduce --top 3 "$work/logs/$job" | tee "$work/reduced"
for line in '4 processes on 1 host' "train, job $job: peaks"; do
	grep -qxF "$line" "$work/reduced" || fail "reduce did not say: $line"
done

# A task that asks to be left alone leaves nothing, and neither does one whose library is missing.
GPUMEMTOP_LOG=off srun -n 1 "$work/bin/tiny" >/dev/null
rm "$work/bin/libgpumemtop.so"
srun -n 1 "$work/bin/tiny" >/dev/null || fail "a job without the library fails"
[ "$(ls "$work/logs")" = "$job" ] || fail "logs of a job that wanted none: $(ls "$work/logs")"
[ "$(sinfo -h -o %t)" != drain ] || fail "the Epilog drained the node"
echo "Slurm: four tasks of job $job left records, and the Epilog a table; a job that wants none has none"
