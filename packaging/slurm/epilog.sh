#!/bin/sh
# Slurm's Epilog: makes job.parquet of what the tasks of a job left, beside their flight logs. Slurm runs this as root on each node
# when the job has ended there: the last one finds all. In slurm.conf: Epilog=/etc/slurm/gpumemtop/epilog.sh
#
# It always succeeds: a node whose Epilog fails takes no more jobs.
gpumemtop=${GPUMEMTOP:-/usr/bin/gpumemtop}
logs=${GPUMEMTOP_LOGS:-/shared/gpumemtop/logs}

folder=$logs/${SLURM_JOB_ID:-}
[ -n "${SLURM_JOB_ID:-}" ] && [ -n "${SLURM_JOB_UID:-}" ] && [ -d "$folder" ] || exit 0
# As the user: nothing that a user left there can make root write or read elsewhere.
setpriv --reuid "$SLURM_JOB_UID" --regid "${SLURM_JOB_GID:-$SLURM_JOB_UID}" --clear-groups \
	"$gpumemtop" reduce -f -o "$folder/job.parquet" "$folder" >/dev/null 2>&1
exit 0
