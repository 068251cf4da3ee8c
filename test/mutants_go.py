#!/usr/bin/env python3
"""mutants_go.py ROOM EVERY: changes one operator at a time where gremlins, whose list comes in, finds that the tests of the room get there,
and runs those tests. Lists what survived, except what mutants.equal argues to be equal."""
import concurrent.futures as futures, json, os, re, resource, subprocess, sys, tempfile
from pathlib import Path

ROOM, EVERY = sys.argv[1], int(sys.argv[2])
WORKERS = int(os.environ.get("JOBS", os.cpu_count()))
BECOMES = {
    "CONDITIONALS_BOUNDARY": {"<": "<=", "<=": "<", ">": ">=", ">=": ">"},
    "CONDITIONALS_NEGATION": {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"},
    "ARITHMETIC_BASE": {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"},
    "INCREMENT_DECREMENT": {"++": "--", "--": "++"},
    "INVERT_NEGATIVES": {"-": "+"},
}


def build(folder, *flags):
    return subprocess.run(["go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", folder + "/room.test", *flags, f"./{ROOM}"], capture_output=True).returncode == 0


def test(folder, seconds, *flags):
    """The outcome of the room's tests within so much time of the processor. A change may let them run or allocate for ever."""
    return subprocess.run(["prlimit", f"--as={8 << 30}", f"--cpu={seconds}", folder + "/room.test", "-test.failfast", f"-test.timeout={10 * seconds}s",
                           *flags], capture_output=True, text=True, cwd=ROOM)


def judge(job):
    """Where a change is, what it is, and what becomes of it: invalid, survived or killed."""
    kind, file, line, column = job[0], f"{ROOM}/{job[1]}", int(job[2]) - 1, int(job[3]) - 1
    lines = Path(file).read_text().splitlines()
    before, after = lines[line].encode()[:column].decode(), lines[line].encode()[column:].decode()
    old = max((o for o in BECOMES[kind] if after.startswith(o)), key=len)
    new, rest = BECOMES[kind][old], after[len(old):]
    with tempfile.TemporaryDirectory() as folder:
        lines[line] = before + new + rest
        Path(folder, "changed.go").write_text("\n".join(lines) + "\n")
        Path(folder, "overlay").write_text(json.dumps({"Replace": {os.path.abspath(file): folder + "/changed.go"}}))
        what = "invalid"
        if build(folder, "-overlay", folder + "/overlay"):
            what = "survived" if all(test(folder, s, part).returncode == 0 for part, s in seconds.items()) else "killed"
    return f"{file}:{line + 1}", f"{file}: " + (before + "{" + old + " => " + new + "}" + rest).strip(), what


# The tests in two parts, the slow ones only for what the others let live, each with the time that it may take.
seconds = {}
with tempfile.TemporaryDirectory() as folder:
    done = test(folder, 600, "-test.v") if build(folder) else None
    if not done or done.returncode:
        sys.exit(f"{ROOM}: its tests fail")
    took = {name: float(s) for name, s in re.findall(r"^--- PASS: (\w+) \((\S+)s\)", done.stdout, re.M)}
    slow = "|".join(name for name, s in took.items() if s > sum(took.values()) / 10)
    for part in f"-test.skip=^({slow})$", f"-test.run=^({slow})$":
        begun = resource.getrusage(resource.RUSAGE_CHILDREN)
        test(folder, 600, part)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds[part] = int(5 + 5 * (ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime))
found = re.findall(r"(RUNNABLE|NOT COVERED) (\w+) at ([^/\s]+):(\d+):(\d+)", sys.stdin.read())
reached = [f[1:] for f in found if f[0] == "RUNNABLE"]
jobs = [j for j in reached if j[0] != "INVERT_NEGATIVES" or ("ARITHMETIC_BASE", *j[1:]) not in reached][::EVERY] # both are the same change
equal = set(Path("test/mutants.equal").read_text().splitlines())
count = {"killed": 0, "survived": 0}
with futures.ThreadPoolExecutor(WORKERS) as pool:
    for at, label, what in pool.map(judge, jobs):
        what = "argued" if what == "survived" and label in equal else what
        count[what] = count.get(what, 0) + 1
        if what == "survived":
            print(f"{at}: {what}: {label}", flush=True)
print(f"{ROOM}: {len(jobs)} mutants, {count}, not covered {sum(f[0] != 'RUNNABLE' for f in found)}: "
      f"{100 * count['killed'] / max(1, count['killed'] + count['survived']):.1f} % killed")
