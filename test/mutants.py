#!/usr/bin/env python3
"""mutants.py ROOM [EVERY]: changes one operator, constant, condition or statement at a time in the files of a room of the shim,
and runs the tests that reach its line, until one fails, and then the schedules of it, if there are any, and the simulation. Lists what survived, except what
mutants.equal argues to be equal.
EVERY=5 tries every fifth only. What build/mutants/ROOM.state has is not tried again: killed for as long as the file is the same,
survived for as long as the tests are, too."""
import concurrent.futures as futures, hashlib, json, os, queue, re, shutil, signal, subprocess, sys, time
from pathlib import Path

ROOM, EVERY = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
OUT = Path("build/mutants").absolute()
PLAIN, COVERED, SIMULATION, SCHEDULES = OUT / "shim/plain", OUT / "shim/coverage", OUT / "simulation", OUT / "schedules"
PROGRAMS = 300 # of the simulation
WORKERS = int(os.environ.get("JOBS", os.cpu_count()))
FLAGS = "-std=gnu11 -O1 -w -fPIC -fvisibility=hidden -pthread -DGMT_TEST_STACKS -DGMT_FILL_MOST=64 -DGMT_NOTES_THREADS -DGMT_CHECKS_LOCKS -c".split()

# What stands between operands: a pattern, and what takes its place.
OPERATORS = [(re.compile(p), r) for p, r in [
    (r"(?<= )==(?= )", "!="), (r"(?<= )!=(?= )", "=="), (r"(?<= )<(?= )", "<="), (r"(?<= )<=(?= )", "<"), (r"(?<= )>(?= )", ">="),
    (r"(?<= )>=(?= )", ">"), (r"(?<= )&&(?= )", "||"), (r"(?<= )\|\|(?= )", "&&"), (r"(?<= )\+(?= )", "-"), (r"(?<= )-(?= )", "+"),
    (r"(?<= )\*(?= )", "/"), (r"(?<= )/(?= )", "*"), (r"(?<= )%(?= )", "/"), (r"(?<= )&(?= )", "|"), (r"(?<= )\|(?= )", "&"),
    (r"<<", ">>"), (r"(?<= )>>", "<<"), (r"\+\+", "--"), (r"--", "++"), (r"(?<= )\+=", "-="), (r"(?<= )-=", "+="), (r"(?<= )&=", "|="),
    (r"(?<= )\|=", "&="), (r"(?<![\w!])!(?=[\w(])", ""), (r"(?<=[ (])~", ""), (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"\bcontinue;", "break;"), (r"\bbreak;", "continue;")]]
CONSTANT = re.compile(r"(?<![\w.\"'])\d+(?=u?l*\b)")
CONDITION = re.compile(r"\b(?:if|while) \(")
STATEMENT = re.compile(r"^\t+(\*?[A-Za-z_][\w.\[\]>-]*(?:\(.*\)| [-+|&^]?= .*|\+\+|--);)$")


def closing(line, at):
    depth = 0
    for i in range(at, len(line)):
        depth += (line[i] == "(") - (line[i] == ")")
        if depth == 0:
            return i
    return -1


def changes(line):
    """Spans of a line, and what takes their place."""
    code = re.sub(r'"(?:\\.|[^"\\])*"', lambda m: '"' + "_" * (len(m[0]) - 2) + '"', line)
    code = re.sub(r"/\*.*?(\*/|$)", lambda m: " " * len(m[0]), code)
    for pattern, new in OPERATORS:
        for m in pattern.finditer(code):
            yield m.start(), m.end(), new
    for m in CONSTANT.finditer(code):
        yield m.start(), m.end(), str(int(m[0], 8 if m[0].startswith("0") else 10) + 1)
    for m in CONDITION.finditer(code):
        end = closing(code, m.end() - 1)
        if end > 0:
            yield m.end(), end, "true"
            yield m.end(), end, "false"
    if m := STATEMENT.match(code.rstrip()):
        yield m.start(1), m.end(1), ";"


def mutants(path, reached):
    """Of the lines in functions: number, start, end, new, and the tests that reach the line or, for one that continues a statement,
    the last that gcov knows."""
    inside, tests = False, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line in ("{", "}"):
            inside, tests = line == "{", None
        tests = reached.get(number, tests)
        if inside and tests is not None and not line.lstrip().startswith(("*", "/*")):
            for start, end, new in changes(line):
                yield number, start, end, new, tests


def shown(line, start, end, new):
    return (line[:start] + "{" + line[start:end] + " => " + new + "}" + line[end:]).strip()


def reach(room):
    """By file and line, the tests that get there, and what each test takes. gcov has it from a run of each alone."""
    names = [n for f in sorted(Path("shim/test").glob("test_*.c")) for n in re.findall(r"^TEST\((\w+)\)", f.read_text(), re.M)]
    lines, took = {}, {}

    def one(name):
        prefix = OUT / "gcov" / name
        notes = prefix / str(COVERED)[1:] / room
        shutil.rmtree(prefix, ignore_errors=True)
        notes.mkdir(parents=True)
        begun = time.time()
        done = subprocess.run([COVERED / "tests", name], env={**os.environ, "GCOV_PREFIX": prefix}, capture_output=True)
        took[name] = time.time() - begun
        if done.returncode: # as those of the clock may where others keep the processors busy
            return []
        counts = sorted(notes.glob("*.gcda"))
        for f in counts:
            (notes / (f.stem + ".gcno")).symlink_to(COVERED / room / (f.stem + ".gcno"))
        text = subprocess.run(["gcov", "-t", "-j", *counts], capture_output=True, text=True).stdout if counts else ""
        shutil.rmtree(prefix)
        return [(f["file"], l["line_number"], l["count"]) for j in text.splitlines() for f in json.loads(j)["files"] for l in f["lines"]]

    with futures.ThreadPoolExecutor(WORKERS) as pool:
        for name, found in zip(names, pool.map(one, names)):
            for file, line, count in found:
                tests = lines.setdefault(os.path.relpath(file), {}).setdefault(line, [])
                if count and name not in tests:
                    tests.append(name)
    return {"lines": lines, "took": took}


class Worker:
    """A tree of its own, in which a file is changed, and a folder with what the tests need."""

    def __init__(self, number):
        self.tree, self.run = (OUT / f"{ROOM.replace('/', '_')}.{what}{number}" for what in ("tree", "run"))
        for folder in (self.tree, self.run):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree("shim", self.tree / "shim")
        shutil.copytree("internal/wire", self.tree / "internal/wire")
        self.run.mkdir()
        for file in PLAIN.iterdir():
            if file.is_file() and file.suffix != ".o":
                os.link(file, self.run / file.name) # a symbolic link would lead the tests to the real libraries
        self.objects = {str(o.relative_to(PLAIN)): o for o in sorted(PLAIN.glob("shim/*/*.o"))}

    def compile(self, path):
        made = self.run / "changed.o"
        done = subprocess.run(["gcc", *FLAGS, "-o", made, path], cwd=self.tree, capture_output=True)
        return made.read_bytes() if done.returncode == 0 else None

    def judge(self, path, text, same, tests, limit):
        """What becomes of a file with this text: invalid, equal, unreached, survived, timeout, or the test that fails."""
        (self.tree / path).write_text(text)
        code = self.compile(path)
        if code is None or code == same:
            return "invalid" if code is None else "equal"
        if not tests:
            return self.beside(path) or "unreached"
        library = self.run / "libgpumemtop.so"
        library.unlink(missing_ok=True)
        objects = [self.run / "changed.o" if o == path[:-2] + ".o" else at for o, at in self.objects.items()]
        subprocess.run(["gcc", "-shared", "-pthread", "-Wl,-soname,libgpumemtop.so", "-Wl,-z,now", "-Wl,-z,nodelete",
                        "-Wl,--version-script=shim/shim.map", "-o", library, *objects, "-ldl"], cwd=self.tree, check=True, capture_output=True)
        was = self.test(tests, limit)
        if was in tests and self.test([was], limit) == "survived": # it failed by itself
            was = self.test([t for t in tests if t != was], limit)
        return was if was != "survived" else self.beside(path) or was

    def beside(self, path):
        """What notices the change beside the tests, if anything does."""
        try:
            return "schedules" if self.schedules_fail(path) else "simulation" if self.simulation_fails(path) else None
        except subprocess.TimeoutExpired:
            return "timeout"

    def schedules_fail(self, path):
        if ROOM != "shim/order" and path != "shim/registry/host_range.c":
            return False
        flags, changed = ["-std=gnu11", "-O1", "-pthread", "-w"], self.run / "scheduled.o"
        subprocess.run(["gcc", *flags, "-include", "shim/test/yield.h", "-c", "-o", changed, path], cwd=self.tree, check=True)
        others = [o for o in SCHEDULES.glob("*.o") if o.stem != Path(path).stem]
        subprocess.run(["gcc", *flags, "-o", self.run / "schedules", changed, *others], check=True)
        return subprocess.run([self.run / "schedules", "50000"], capture_output=True, timeout=900).returncode != 0

    def simulation_fails(self, path):
        objects = (SIMULATION / "objects").read_text().split()
        changed = [self.run / "changed.o" if o.endswith(f"/{path[:-2]}.o") else o for o in objects]
        if changed == objects:
            return False
        subprocess.run(["gcc", "-pthread", "-rdynamic", "-o", self.run / "simulate", *SIMULATION.glob("*.o"), *changed, "-Wl,--wrap=gmt_pause",
                        "-Wl,--no-as-needed", f"-Wl,-rpath,{SIMULATION}", f"-L{SIMULATION}", "-l:libgpumemtop.so", "-ldl"], check=True)
        return subprocess.run([self.run / "simulate", "-found", str(PROGRAMS)], capture_output=True, timeout=900).returncode != 0

    def test(self, tests, limit):
        process = subprocess.Popen([self.run / "tests", *tests], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        os.set_blocking(process.stdout.fileno(), False)
        text, until = "", time.time() + limit
        while process.poll() is None and "FAIL" not in text and time.time() < until:
            time.sleep(0.02)
            text += (process.stdout.read() or b"").decode()
        late = process.poll() is None and "FAIL" not in text
        os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
        text += (process.stdout.read() or b"").decode()
        status = process.wait()
        failed = re.search(r"FAIL +(\w+)", text)
        return "timeout" if late or ": signal 14" in text else failed[1] if failed else "survived" if status == 0 else "status"


def main():
    subprocess.run(["bash", "shim/test/run.sh", OUT / "shim"], env={**os.environ, "ONLY": "plain coverage", "BUILD_ONLY": "1"}, check=True)
    subprocess.run(["bash", "shim/test/simulate.sh", PLAIN, SIMULATION, "-O1"], env={**os.environ, "SEEDS": "10"}, check=True, capture_output=True)
    subprocess.run(["bash", "shim/test/schedules.sh", SCHEDULES], env={**os.environ, "BUILD_ONLY": "1"}, check=True)
    files = sorted(str(f) for f in Path(ROOM).glob("*.c"))
    digest = lambda paths: hashlib.sha256(b"".join(Path(p).read_bytes() for p in sorted(map(str, paths)))).hexdigest()[:16]
    tests = digest(Path("shim/test").glob("*.[ch]"))
    known = OUT / f"{ROOM.replace('/', '_')}.{tests}.{digest(files)}.reach"
    if not known.exists():
        known.write_text(json.dumps(reach(ROOM)))
    reached = json.loads(known.read_text())
    state = OUT / f"{ROOM.replace('/', '_')}.state"
    before = dict(json.loads(l) for l in state.read_text().splitlines()) if state.exists() else {}
    equal = set(re.findall(r"^(shim/\S+: .*)$", Path("test/mutants.equal").read_text(), re.M))
    workers = queue.Queue()
    for i in range(WORKERS):
        workers.put(Worker(i))

    def one(job):
        path, (number, start, end, new, names) = job
        lines = Path(path).read_text().splitlines()
        label = shown(lines[number - 1], start, end, new)
        key = f"{digest([path])} {number} {start} {label}"
        was = before.get(key, before.get(f"{key} {tests}"))
        if was:
            return path, number, label, was
        worker = workers.get()
        (worker.tree / path).write_text("\n".join(lines) + "\n")
        same = worker.compile(path)
        lines[number - 1] = lines[number - 1][:start] + new + lines[number - 1][end:]
        was = worker.judge(path, "\n".join(lines) + "\n", same, names, 30 + 5 * sum(reached["took"][n] for n in names))
        workers.put(worker)
        with state.open("a") as out:
            out.write(json.dumps([key + (f" {tests}" if was in ("survived", "unreached") else ""), was]) + "\n")
        return path, number, label, was

    jobs = [(path, m) for path in files for m in mutants(Path(path), {int(l): t for l, t in reached["lines"].get(path, {}).items()})][::EVERY]
    count, late = {}, 0
    with futures.ThreadPoolExecutor(WORKERS) as pool:
        for path, number, label, was in pool.map(one, jobs):
            kind = was if was in ("invalid", "equal", "unreached", "survived") else "killed"
            if kind in ("unreached", "survived") and f"{path}: {label}" in equal:
                kind = "argued"
            count[kind] = count.get(kind, 0) + 1
            late += was == "timeout"
            if kind in ("unreached", "survived"):
                print(f"{path}:{number}: {kind}: {label}", flush=True)
    lived = count.get("survived", 0) + count.get("unreached", 0)
    print(f"{ROOM}: {len(jobs)} mutants, {count}, {late} of the killed by time: {100 * count.get('killed', 0) / max(1, count.get('killed', 0) + lived):.1f} % killed")


main()
