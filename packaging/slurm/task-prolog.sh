#!/bin/sh
# Slurm's TaskProlog: each task leaves a flight log of its OpenCL memory in a folder of its job. Slurm runs this as the user, and
# takes the environment of the task from what it prints. In slurm.conf: TaskProlog=/etc/slurm/gpumemtop/task-prolog.sh
#
# On all nodes: the library, from "gpumemtop library -o", and a folder in which each user may make one (chmod 1777). Where either
# is missing, the task runs as ever. GPUMEMTOP_LOG=off in the user's environment leaves a job alone.
library=${GPUMEMTOP_LIBRARY:-/shared/gpumemtop/libgpumemtop.so}
logs=${GPUMEMTOP_LOGS:-/shared/gpumemtop/logs}

[ "${GPUMEMTOP_LOG:-}" != off ] || exit 0
[ -r "$library" ] && [ -n "${SLURM_JOB_ID:-}" ] || exit 0
mkdir -m 700 "$logs/$SLURM_JOB_ID" 2>/dev/null # another task may have made it
[ -O "$logs/$SLURM_JOB_ID" ] && [ -w "$logs/$SLURM_JOB_ID" ] || exit 0
echo "export GPUMEMTOP_LOG=$logs/$SLURM_JOB_ID"
echo "export LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}"
