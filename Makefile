# Builds gpumemtop and everything around it on Debian with Go. Start with "make", or "make demo" to see it work.
#
#   make          bin/gpumemtop, bin/examples/* and bin/test/*
#   make demo     run a program with five faults under the dashboard, report them, export the recording as JSON
#   make demo-python   the same with a program in Python and PyOpenCL
#   make test     build, tests of the shim under sanitizers, all Go tests (the race detector watches all except test/e2e),
#                 and make check
#   make test-drivers   all programs under all policies on PoCL's other devices, rusticl, clover and oclgrind
#   make fleet    bin/gpumemtop-fleet, for many recordings: docs/FLEET.md; make test-fleet: tests it
#   make nightly  everything that takes long, one after the other, with what each took: NIGHTLY="dist fuzz" for some
#   make gpu-check   try gpumemtop on this machine's OpenCL device; writes build/gpu-check.txt
#   make check    formatting, static analysis of Go and C, models of the protocols (make models: larger ones), generated files up to date
#   make soak     random programs, bare and under every policy: SEEDS=2000 of them, from FIRST=1 on; DRIVER=rusticl: not on PoCL;
#                 then a quarter of them in each of MODES: with --spill at 100, 50 and 25 % of their peaks, under arena, with others' plans, in experiments,
#                 with idle memory that goes back after a millisecond
#   make simulate random programs over the whole shim, in one thread and with a clock of its own: SEEDS=2000 from FIRST=1 on; then known faults
#   make coverage how much of each room the unit tests reach, which may only rise: test/coverage.floors; E2E=. adds the end-to-end tests
#   make mutants  ROOM=shim/order or internal/heap: how many changes of its code the room's tests notice; EVERY=5: a fifth of them
#   make fuzz     every fuzz target for FUZZTIME=10s, or those below a folder: FUZZ=internal/check
#   make bench    what it costs and what it saves, measured on this machine; bench-peers: single calls, beside
#                 Intel's intercept layer if INTEL_LAYER=DIR has its source
#   make pgo      the profiles that bin/gpumemtop and the core are built with
#   make screenshot   takes the pictures in docs again
#   make install  the program, its man pages, completions and monitoring files into PREFIX=/usr/local, below DESTDIR; make uninstall
#   make dist     a Debian package, a tarball, checksums and a bill of materials in build/dist, tried
#   make arm64    build/arm64/bin/gpumemtop, for 64-bit ARM; make test-arm64: that under qemu-user
#   make release  what a release takes, step by step
#   make deps     install the Debian packages that a build needs (part of everything above; make test-deps: those of the tests)
#   make clean    remove what was built

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:

# What a build needs beyond Go and make: a compiler, and an OpenCL that runs anywhere with its loader and headers.
PACKAGES := gcc libc6-dev pocl-opencl-icd ocl-icd-libopencl1 ocl-icd-opencl-dev opencl-headers

# What the tests and checks need, too: more compilers, the programs, terminal and browser that they run, and Python with PyOpenCL.
TEST_PACKAGES := g++ binutils clang llvm spin mandoc strace libbpf-dev libc6-dev-arm64-cross clinfo clpeak hashcat clblast-utils sudo ffmpeg curl openmpi-bin libopenmpi-dev tmux chromium python3 python3-pyopencl

ARM64_PACKAGES := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static

# OpenCL drivers for the tests of drivers, as far as this release of Debian has them: without them, those are skipped.
ALL_DRIVERS := mesa-opencl-icd oclgrind
DRIVERS = $(filter $(ALL_DRIVERS),$(shell apt-cache pkgnames 2>/dev/null))

# make arm64 builds for another machine, below a folder of its own, with another compiler (CROSS) and make for this machine's files.
MACHINE :=
BUILD := build$(MACHINE:%=/%)
BIN := $(MACHINE:%=$(BUILD)/)bin
CROSS :=

ARM64 := aarch64-linux-gnu-
GO_LEAST := $(shell sed -n 's/^go //p' go.mod)
GO_IS_NEW = $(shell printf '%s\n' go$(GO_LEAST) "$$($(1) version 2>/dev/null | cut -d ' ' -f 3)" | sort -V | sed -n '1s/^go$(GO_LEAST)$$/yes/p' | grep . || echo no)
OWN_GO := $(CURDIR)/.tools/go-$(shell sed -n 's/^version=//p' packaging/toolchain.sh)/bin/go
ifeq ($(origin GO),undefined)
GO := $(if $(filter yes,$(call GO_IS_NEW,go)),go,$(OWN_GO))
endif
ifeq ($(GO),$(OWN_GO))
export PATH := $(dir $(OWN_GO)):$(PATH)
endif
# All but bin/gpumemtop is built alike, so that tests and checks find in Go's build cache what others have compiled.
export GOFLAGS := -trimpath -tags=netgo $(filter-out -trimpath -tags=%,$(GOFLAGS))
CC := $(CROSS)gcc
CLANG ?= clang
GOLANGCI_VERSION := v2.15.0
GOLANGCI := .tools/golangci-lint-$(GOLANGCI_VERSION)
GREMLINS_VERSION := v0.6.0
BENCHSTAT_VERSION := v0.0.0-20260908200009-22c9c6c9d4da

WARNINGS := -Wall -Wextra -Werror -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wvla \
	-Wformat=2
PROGRAM_FLAGS := -std=c11 -O2 -g -Iexamples -Itest/programs $(WARNINGS)
SHIM_FLAGS := -std=gnu11 -O3 -flto=auto -g -fPIC -fvisibility=hidden -pthread $(WARNINGS)
SHIM_LINK := -shared -Wl,--version-script=shim/shim.map -Wl,-z,now -Wl,-z,defs -Wl,-z,nodelete \
	-Wl,-Bsymbolic-functions -Wl,-soname,libgpumemtop.so

# What is shipped starts with glibc 2.28 and later: packaging/floor.sh. Before 2.34, threads and dlopen were in libraries of
# their own, which must be named even where libc has everything.
FLOOR := $(BUILD)/floor/libc.so
FLOOR_LINK := -static-libgcc -L$(CURDIR)/$(BUILD)/floor -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--pop-state

# No preempting signals, and no descriptor kept open to read the control group's limit.
CORE_GODEBUG := asyncpreemptoff=1,containermaxprocs=0,updatemaxprocs=0
# Go's runtime has its threads from the shim: intercept/threads.c.
CORE_LINK = -Wl,--version-script=$(CURDIR)/intercept/intercept.map -Wl,--wrap=pthread_create $(FLOOR_LINK) -L$(CURDIR)/$(BUILD) -l:libgpumemtop.so

# A third of the usual depth, in half the time.
ANALYZE := --analyze --analyzer-output text -Xclang -analyzer-werror -Xclang -analyzer-config -Xclang max-nodes=75000

# As tracer/kernel/kernel.go compiles it; -g gives the kernel its types.
BPF_FLAGS := -target bpf -std=gnu11 -O2 -g -ffreestanding -Iinternal/wire -I/usr/include/x86_64-linux-gnu \
	-Wall -Wextra -Werror -Wshadow -Wno-unused-parameter

BPF_SOURCES := $(wildcard tracer/kernel/bpf/*.c)
CGO_SOURCES := $(wildcard intercept/*.c internal/*/*/*.c)
SHIM_FLOORS := base registry order pool spill entry hooks
SHIM_SOURCES := $(foreach floor,$(SHIM_FLOORS),$(wildcard shim/$(floor)/*.c))
SHIM_HEADERS := $(foreach floor,$(SHIM_FLOORS),$(wildcard shim/$(floor)/*.h shim/$(floor)/*.def)) $(wildcard internal/wire/*.h internal/wire/*.def)
EXAMPLE_BINS := $(patsubst examples/%.c,bin/examples/%,$(filter-out %/common.c %/gpu.c,$(wildcard examples/*.c)))

# Test programs of more than one file have a folder each and are also built without images. Those in faults/ share work.c.
TEST_FOLDERS := conformance queries soak
# One of them needs MPI: without it, it is left out until make test has installed that.
TEST_BINS := $(patsubst test/programs/%.c,bin/test/%,$(filter-out %/work.c,$(wildcard test/programs/*.c test/programs/faults/*.c))) \
	$(TEST_FOLDERS:%=bin/test/%) $(TEST_FOLDERS:%=bin/test/%-buffers)
ifeq ($(shell command -v mpicc),)
TEST_BINS := $(filter-out bin/test/ranks,$(TEST_BINS))
endif
PROGRAM_SOURCES := $(wildcard examples/*.c test/programs/*.c test/programs/*/*.c)
PROGRAM_HEADERS := $(wildcard examples/*.h test/programs/*.h test/programs/*/*.h)
PAYLOAD := internal/session/payload/lib
CARRIED := $(if $(MACHINE),$(BUILD)/lib,$(PAYLOAD))
LIBRARIES := $(CARRIED)/libgpumemtop.so $(CARRIED)/libgpumemtop-core.so

# Go compiles what runs do most, and the core's hits, for speed, as these profiles have them: an event takes a tenth less time, a hit
# a seventh. The names are not default.pgo, which Go would use for tests as well.
PROFILE := cmd/gpumemtop/run.pgo
CORE_PROFILE := intercept/core.pgo

# The commit is stamped into the binary where git knows it.
STAMP := $(if $(shell git rev-parse HEAD 2>/dev/null),auto,false)

# Example: make test TESTFLAGS=-v
TESTFLAGS ?=
DEMO_ARGUMENTS ?= 540
DEMO_PYTHON_ARGUMENTS ?= 480
BENCHFLAGS ?=
FUZZ ?= .
FUZZTIME ?= 10s
SEEDS ?= 2000
FIRST ?= 1
MODES ?= spill arena plan arms idle

.PHONY: all
all: bin/gpumemtop programs

.PHONY: programs
programs: $(EXAMPLE_BINS) $(TEST_BINS)

# --- packages -------------------------------------------------------------------------------------------------------

.PHONY: deps test-deps
deps: build/deps.stamp
test-deps: build/test-deps.stamp

# Where go is not there, or older than go.mod asks for and may not fetch another, GO is a toolchain that packaging/toolchain.sh
# fetches. From 1.21 on, go fetches it itself, unless GOTOOLCHAIN forbids that, as Debian's does.
.PHONY: go-version
ifneq ($(GO),$(OWN_GO))
go-version:
	@if [ $(call GO_IS_NEW,$(GO)) != yes ]; then \
		echo "Go $(GO_LEAST) or later is needed, and $(GO) is not: name another (make GO=/path/to/go), or none" >&2; \
		exit 1; \
	fi
else
go-version: $(OWN_GO)
$(OWN_GO): | build/fetch.stamp
	@bash packaging/toolchain.sh $(OWN_GO:%/bin/go=%)
endif

build/deps.stamp: WANTED = $(PACKAGES)
build/fetch.stamp: WANTED = ca-certificates curl unzip
build/dist.stamp: WANTED = git
build/python.stamp: WANTED = python3-pyopencl
build/test-deps.stamp: WANTED = $(TEST_PACKAGES)
build/drivers.stamp: WANTED = $(DRIVERS)
build/clinfo.stamp: WANTED = clinfo
build/arm64.stamp: WANTED = $(ARM64_PACKAGES)
build/deps.stamp: | go-version
build/python.stamp build/test-deps.stamp build/clinfo.stamp build/arm64.stamp: | build/deps.stamp
build/drivers.stamp: | build/test-deps.stamp
build/deps.stamp build/fetch.stamp build/dist.stamp build/python.stamp build/test-deps.stamp build/drivers.stamp build/clinfo.stamp build/arm64.stamp: Makefile
	@mkdir -p build
	@missing=(); \
	for package in $(WANTED); do \
		state=$$(dpkg-query -W -f '$${db:Status-Status}' "$$package" 2>/dev/null || true); \
		[ "$$state" = installed ] || missing+=("$$package"); \
	done; \
	if [ "$${#missing[@]}" -gt 0 ]; then \
		echo "installing: $${missing[*]}"; \
		command -v apt-get >/dev/null || { echo "no apt-get here: install the equivalents of: $${missing[*]}; then: touch $@" >&2; exit 1; }; \
		if [ "$$(id -u)" = 0 ]; then root=(); \
		elif command -v sudo >/dev/null; then root=(sudo); \
		else echo "not root and no sudo: ask for these packages to be installed: $${missing[*]}" >&2; exit 1; fi; \
		"$${root[@]}" apt-get update -q; \
		"$${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$${missing[@]}"; \
	fi
	@touch $@

# --- the two libraries that go into the target ----------------------------------------------------------------------

$(FLOOR): packaging/floor.sh | build/deps.stamp
	@CC="$(CC)" bash packaging/floor.sh $(CURDIR)/$(@D)

$(BUILD)/libgpumemtop.so: $(SHIM_SOURCES) $(SHIM_HEADERS) shim/shim.map $(FLOOR) Makefile | build/deps.stamp
	$(CC) $(SHIM_FLAGS) $(SHIM_SOURCES) $(SHIM_LINK) $(FLOOR_LINK) -o $@

# A shim for tests: it compares the call stacks that it walks with the compiler's unwinder's. Without what takes long to build.
build/stacks/libgpumemtop.so: $(SHIM_SOURCES) $(SHIM_HEADERS) shim/shim.map $(FLOOR) Makefile | build/deps.stamp
	@mkdir -p $(@D)
	$(CC) $(filter-out -flto=auto -g,$(SHIM_FLAGS)) -DGMT_TEST_STACKS $(SHIM_SOURCES) $(SHIM_LINK) $(FLOOR_LINK) -o $@

# Go's runtime, changed for the core, so that it opens no descriptor in the program.
$(BUILD)/runtime/overlay.json: FORCE | build/deps.stamp
	@GO=$(GO) intercept/runtime/overlay.sh $(@D)

# go build itself finds out what changed, except in the floor.
$(BUILD)/libgpumemtop-core.so: FORCE $(BUILD)/libgpumemtop.so $(BUILD)/runtime/overlay.json | build/deps.stamp
	@[ $@ -nt $(FLOOR) ] || rm -f $@
	$(GO) build -overlay $(BUILD)/runtime/overlay.json -buildmode=c-shared -buildvcs=false -pgo=$(CORE_PROFILE) \
		-ldflags='-s -w -X=runtime.godebugDefault=$(CORE_GODEBUG) -extldflags "$(CORE_LINK)"' -o $@ ./intercept

# Without what debuggers want, because each run rewrites them. Copied only when different, so that an unchanged library does not
# rebuild the command.
$(CARRIED)/%.so: $(BUILD)/%.so
	@mkdir -p $(@D)
	@$(CROSS)strip -g -o $<.stripped $<
	@cmp -s $<.stripped $@ || cp $<.stripped $@

# What another machine's program carries in place of the libraries for this one.
$(BUILD)/carried.json: $(LIBRARIES)
	@printf '{"Replace": {%s}}\n' "$$(printf '"$(CURDIR)/$(PAYLOAD)/%s": "$(CURDIR)/$(CARRIED)/%s"\n' $(foreach file,$(notdir $(LIBRARIES)),$(file) $(file)) | paste -s -d ,)" > $@

# What was just written is cached in pieces of up to 2 MiB, which Linux maps whole: 10 MiB more than a running gpumemtop has
# resident when its file was read from the disk. So it is to be read; where dd cannot ask for that, all works as well.
$(BIN)/gpumemtop: FORCE $(LIBRARIES) $(if $(MACHINE),$(BUILD)/carried.json)
	@mkdir -p $(@D)
	$(GO) build $(if $(MACHINE),-overlay $(BUILD)/carried.json) -pgo=$(PROFILE) -buildvcs=$(STAMP) -ldflags '-extldflags "-no-pie -Wl,--wrap=__libc_start_main $(FLOOR_LINK)"' -o $@ ./cmd/gpumemtop
	@sync $@
	@dd if=$@ iflag=nocache count=0 status=none || true

# For 64-bit ARM: Debian's gcc-aarch64-linux-gnu makes it.
.PHONY: arm64
arm64: | build/arm64.stamp
	GOARCH=arm64 CGO_ENABLED=1 CC=$(ARM64)gcc $(MAKE) MACHINE=arm64 CROSS=$(ARM64) build/arm64/bin/gpumemtop

# It runs there, under qemu-user: the shim's tests and two examples under all policies. Minutes, so it is not part of make test.
.PHONY: test-arm64
test-arm64: arm64
	CROSS=$(ARM64) bash test/arm64.sh build/arm64

# --- examples and test programs -------------------------------------------------------------------------------------

.PRECIOUS: build/obj/%.o build/obj/buffers/%.o
build/obj/%.o: %.c $(PROGRAM_HEADERS) Makefile | build/deps.stamp
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_FLAGS) -pthread -c $< -o $@

# Without images, for policies that make buffers parts of slabs on any driver.
build/obj/buffers/%.o: %.c $(PROGRAM_HEADERS) Makefile | build/deps.stamp
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_FLAGS) -DWITHOUT_IMAGES -pthread -c $< -o $@

# The MPI headers are not held to our warnings: -isystem.
MPI_FLAGS = $(patsubst -I%,-isystem %,$(shell mpicc --showme:compile))

build/obj/test/programs/ranks.o: test/programs/ranks.c $(PROGRAM_HEADERS) Makefile | build/deps.stamp
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_FLAGS) $(MPI_FLAGS) -c $< -o $@

COMMON := build/obj/examples/gpu.o build/obj/examples/common.o

bin/examples/%: build/obj/examples/%.o $(COMMON)
	@mkdir -p $(@D)
	$(CC) $^ -o $@ -pthread -lOpenCL

bin/test/%: build/obj/test/programs/%.o $(COMMON)
	@mkdir -p $(@D)
	$(CC) $^ -o $@ -pthread -lOpenCL

bin/test/faults/%: build/obj/test/programs/faults/%.o build/obj/test/programs/faults/work.o $(COMMON)
	@mkdir -p $(@D)
	$(CC) $^ -o $@ -pthread -lOpenCL

bin/test/ranks: build/obj/test/programs/ranks.o $(COMMON)
	@mkdir -p $(@D)
	mpicc $^ -o $@ -lOpenCL

# These two are not linked with OpenCL: dynamic opens it itself, nocl uses none.
bin/test/dynamic: build/obj/test/programs/dynamic.o build/obj/examples/common.o
	@mkdir -p $(@D)
	$(CC) $^ -o $@ -ldl

bin/test/faults/nocl: build/obj/test/programs/faults/nocl.o
	@mkdir -p $(@D)
	$(CC) $^ -o $@

define folder
bin/test/$(1): $(patsubst %.c,build/obj/%.o,$(wildcard test/programs/$(1)/*.c)) $(COMMON)
bin/test/$(1)-buffers: $(patsubst %.c,build/obj/buffers/%.o,$(wildcard test/programs/$(1)/*.c)) $(COMMON)
endef
$(foreach name,$(TEST_FOLDERS),$(eval $(call folder,$(name))))
$(TEST_FOLDERS:%=bin/test/%) $(TEST_FOLDERS:%=bin/test/%-buffers):
	@mkdir -p $(@D)
	$(CC) $^ -o $@ -pthread -lOpenCL

# --- installing -----------------------------------------------------------------------------------------------------

PREFIX ?= /usr/local
ifneq ($(filter install uninstall,$(MAKECMDGOALS)),)
$(if $(PREFIX),,$(error PREFIX is empty: make install PREFIX=/usr/local, or leave it out))
endif
SHARE := $(DESTDIR)$(PREFIX)/share
COMPLETIONS := $(SHARE)/bash-completion/completions/gpumemtop $(SHARE)/zsh/site-functions/_gpumemtop \
	$(SHARE)/fish/vendor_completions.d/gpumemtop.fish

# The libraries that go into programs are in the binary.
.PHONY: install
install: bin/gpumemtop
	install -D -m 755 bin/gpumemtop "$(DESTDIR)$(PREFIX)/bin/gpumemtop"
	install -D -m 644 LICENSE "$(SHARE)/doc/gpumemtop/LICENSE"
	install -m 644 monitoring/grafana.json monitoring/alerts.yml monitoring/lake.sql "$(SHARE)/doc/gpumemtop"
	install -d $(foreach file,$(COMPLETIONS),"$(dir $(file))")
	bash docs/man.sh bin/gpumemtop "$(SHARE)/man"
	bin/gpumemtop completion bash > "$(word 1,$(COMPLETIONS))"
	bin/gpumemtop completion zsh > "$(word 2,$(COMPLETIONS))"
	bin/gpumemtop completion fish > "$(word 3,$(COMPLETIONS))"

.PHONY: uninstall
uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/gpumemtop" "$(SHARE)"/man/man1/gpumemtop.1 "$(SHARE)"/man/man[157]/gpumemtop-*.[157] $(foreach file,$(COMPLETIONS),"$(file)")
	rm -rf "$(SHARE)/doc/gpumemtop"

.PHONY: dist
dist: build/dist.stamp bin/gpumemtop bin/examples/tiny
	GO=$(GO) bash packaging/dist.sh build/dist
	GO=$(GO) bash test/dist.sh build/dist

.PHONY: release
release:
	@sed '1,/^## Releasing/d; /^## /,$$d' CONTRIBUTING.md

# --- demo, tests, measurements --------------------------------------------------------------------------------------

# Runs a program under the dashboard, or without a terminal as text, reports its faults, and exports the recording as JSON.
define show
	@headless=--headless; \
	if [ -t 0 ] && [ -t 1 ]; then headless=; fi; \
	bin/gpumemtop $$headless --guide -f -o build/$@.gmt $(1) || [ $$? -gt 128 ] # stopped by you
	@echo; bin/gpumemtop report build/$@.gmt --section brief
	@bin/gpumemtop export build/$@.gmt --format chrome -f -o build/$@.json
	@echo; echo "recording: build/$@.gmt (bin/gpumemtop report or view)"
	@echo "JSON:      build/$@.json (open it at https://ui.perfetto.dev)"
endef

.PHONY: demo
demo:
	@$(MAKE) -j$(PROCESSORS) bin/gpumemtop $(EXAMPLE_BINS)
	$(call show,--device-memory 256M --max-cached 4M -- bin/examples/photos $(DEMO_ARGUMENTS))

# With Debian's Python, whichever comes first in PATH.
.PHONY: demo-python
demo-python: build/python.stamp
	@$(MAKE) -j$(PROCESSORS) bin/gpumemtop
	$(call show,--device-memory 64M --max-cached 1M -- /usr/bin/python3 examples/photos.py $(DEMO_PYTHON_ARGUMENTS))

# The picture in the README: fifteen seconds of the demo, in which a key raises a limit. Those of a report, a
# post-mortem and a trace are taken by the tests that compare them (test/e2e/pictures_test.go).
SHOT := tmux -L gpumemtop-screenshot -f /dev/null

.PHONY: screenshot
screenshot: all build/test-deps.stamp
	@rm -rf build/shot && mkdir -p build/shot
	$(SHOT) new-session -d -x 120 -y 36 'cd build/shot && XDG_STATE_HOME=/dev/null ../../bin/gpumemtop --device-memory 256M --max-cached 4M -o shot.gmt ../../bin/examples/photos'
	sleep 16
	$(SHOT) send-keys y y
	sleep 14
	$(SHOT) kill-server
	bin/gpumemtop view --film docs/dashboard.svg -f --at 9s build/shot/shot.gmt
	cd test/e2e && OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd $(GO) test -run '^(TestHTMLReport|TestTraceViewerShowsTraces)$$' -count=1 -args -update

# Tests, soak and benchmarks run on PoCL, whatever else is installed; tests of other drivers name those themselves.
test soak bench bench-peers: export OCL_ICD_VENDORS ?= /etc/OpenCL/vendors/pocl.icd

# A line for each test that could not run because this kernel refuses eBPF (internal/testkit/rightstest).
SKIPPED := $(CURDIR)/build/skipped.txt

# Modules of their own, so that go mod download fetches no database (140 MB) and no browser's protocol for a build.
TABLES := internal/testkit/duckdb
MODULES := $(TABLES) test/e2e

# The end-to-end tests watch programs that make has built. The race detector would see only the tests' own reading of
# recordings, which then takes twice as long. The shim's tests and the checks run beside the others, which often wait: the
# checks at the lowest priority, so that they delay none. Generated files come last, because they are written again.
# Installing packages is waiting, so the linter is compiled meanwhile.
.PHONY: test
test:
	$(MAKE) -j2 build/drivers.stamp $(GOLANGCI)
	$(MAKE) -j$(PROCESSORS) all
	@bash test/install.sh
	$(MAKE) -j3 -k test-go shim-beside check-beside || { cat build/shim-test.log build/check.log; exit 1; }
	@cat build/shim-test.log build/check.log
	$(MAKE) check-generated

PROCESSORS := $(shell nproc)

# The race detector finds nothing in packages that start no goroutine, and makes them and some other tests several times slower:
# those run without it.
.PHONY: test-go
test-go:
	@rm -f $(SKIPPED)
	serial=$$($(GO) run ./internal/archtest/race serial); \
	RIGHTSTEST_SKIPPED=$(SKIPPED) GORACE=atexit_sleep_ms=10 $(GO) test -vet=off -race -count=1 -timeout 30m $(TESTFLAGS) \
		$$($(GO) list ./... | grep -vxF "$$serial"); \
	$(GO) test -vet=off -count=1 $(TESTFLAGS) $$serial
	slow=$$($(GO) run ./internal/archtest/race slow); \
	$(GO) test -vet=off -count=1 $(TESTFLAGS) $$slow
	cd $(TABLES) && $(GO) test -vet=off -count=1 $(TESTFLAGS) ./...
	cd test/e2e && RIGHTSTEST_SKIPPED=$(SKIPPED) $(GO) test -vet=off -count=1 -timeout 30m -parallel $$(($(PROCESSORS) + 1)) $(TESTFLAGS)
	@if [ -e $(SKIPPED) ]; then \
		echo "skipped without eBPF: $$(wc -l < $(SKIPPED)) tests ($$(cut -f 1 $(SKIPPED) | sort | paste -s -d ' '))"; \
		cut -f 2 $(SKIPPED) | sort -u; \
	else echo "no test was skipped without eBPF"; fi
	@for driver in $(filter-out $(DRIVERS),$(ALL_DRIVERS)); do \
		echo "skipped without $$driver, which this release of Debian lacks: the tests of its drivers"; \
	done

# What they find must not stand in the middle of what the tests print.
.PHONY: shim-beside check-beside
shim-beside:
	@$(MAKE) shim-test > build/shim-test.log 2>&1

check-beside:
	@nice -n 19 $(MAKE) check-format check-go check-lint check-c check-models > build/check.log 2>&1

.PHONY: test-drivers
test-drivers: build/drivers.stamp
	$(MAKE) all
	cd test/e2e && $(GO) test -run '^Test(Drivers|SpillConforms|ProgramsBehaveAsBare|ReplayDecidesAsTheRun|NoCreateFailsForThePool|AttachedHundredsOfTimes|.*AtAnyMoment)$$' -count=1 -timeout 2h $(TESTFLAGS) -args -drivers.all

# Real engines over what programs leave: Prometheus and its kin, OpenTelemetry, VictoriaMetrics, Polars, which npm brings, and Slurm.
.PHONY: test-engines
test-engines: all
	apt-get install -y --no-install-recommends curl prometheus prometheus-node-exporter prometheus-pushgateway victoria-metrics slurm-wlm munge
	command -v npm >/dev/null || apt-get install -y --no-install-recommends nodejs npm # not beside others' node, which brings its own
	bash test/engines/run.sh
	bash test/engines/slurm.sh

# A module of its own, because Apache Beam brings hundreds of packages, which take minutes to compile. Not part of make, nor of
# make test.
.PHONY: fleet
fleet: | go-version
	cd fleet && $(GO) build -ldflags='-s -w' -o ../bin/gpumemtop-fleet .

# It compares with bin/gpumemtop. RECORDINGS=2000 plays that many.
RECORDINGS ?= 60
.PHONY: test-fleet
test-fleet: all $(GOLANGCI)
	cd fleet && $(GO) vet ./... && $(GO) mod tidy -diff && $(LINT)
	cd fleet && $(GO) test -count=1 -timeout 1h $(TESTFLAGS) . -fleet.recordings=$(RECORDINGS)
	cd $(TABLES) && $(GO) test -run '^TestFleetOfManyRuns$$' -count=1 -timeout 1h $(TESTFLAGS) . -fleet.runs=200

# Tries this machine's device, and writes a report. DRIVER=FILE.icd chooses among several drivers, SIZE=1M the size of buffers.
.PHONY: gpu-check
gpu-check: all build/clinfo.stamp
	$(GO) build -o build/bench ./bench
	$(if $(DRIVER),OCL_ICD_VENDORS=$(DRIVER)) bash test/gpu-check.sh build/gpu-check.txt $(SIZE)

# Everything, also what make test leaves out and what would rot: each part, whether those before it failed or not.
NIGHTLY ?= test check-analyzers soak simulate dist gpu-check test-fleet fuzz screenshot test-drivers test-arm64 test-engines
.PHONY: nightly
nightly:
	@bash test/nightly.sh $(NIGHTLY)

.PHONY: shim-test
shim-test: | build/test-deps.stamp
	@bash shim/test/run.sh

# A seed that fails is printed as the shortest program that fails, which build/simulation/simulate FILE runs again.
.PHONY: simulate
simulate: all build/test-deps.stamp
	ONLY=plain BUILD_ONLY=1 bash shim/test/run.sh
	SEEDS=$(SEEDS) LONG=5800 FIRST=$(FIRST) FAULTS=1 CORE=$(CURDIR)/build/libgpumemtop-core.so bash shim/test/simulate.sh build/shim-test/plain build/simulation -O2

.PHONY: coverage
coverage: all build/test-deps.stamp
	GO=$(GO) test/coverage.sh

# How many changes of a room's code its tests notice: test/mutants.floors.
EVERY ?= 1
.PHONY: mutants
mutants: build/test-deps.stamp .tools/gremlins
	bash test/mutants.sh $(ROOM) $(EVERY)

# Prints what it finds as lines for test/e2e/testdata/soak.txt. Runs in that folder, because go test shows the output of tests
# that pass only there.
.PHONY: soak
soak: all build/soak/gpumemtop
	$(GO) test -run '^TestRandomPlans$$' -count=1 -timeout 0 ./allocator -args -plans.programs=10000
	SCHEDULES=1000000 bash shim/test/schedules.sh build/soak/schedules -fsanitize=address,undefined -fno-sanitize-recover=all
	cd test/e2e && $(GO) test -run '^TestSoak$$' -count=1 -timeout 0 $(TESTFLAGS) -args -soak.seeds=$(SEEDS) -soak.first=$(FIRST) $(if $(DRIVER),-soak.driver=$(DRIVER))
	$(if $(DRIVER),,cd test/e2e && for mode in $(MODES); do \
		$(GO) test -run '^TestSoak$$' -count=1 -timeout 0 $(TESTFLAGS) -args -soak.mode=$$mode -soak.seeds=$$((($(SEEDS) + 3) / 4)) -soak.first=$(FIRST) || exit 1; \
	done)

# With a core whose thread gives idle memory back ten times as soon.
build/soak/gpumemtop: FORCE bin/gpumemtop
	@mkdir -p $(@D)
	$(GO) build -tags netgo,grpcnotrace,soak -overlay $(BUILD)/runtime/overlay.json -buildmode=c-shared -buildvcs=false -pgo=$(CORE_PROFILE) \
		-ldflags='-s -w -X=runtime.godebugDefault=$(CORE_GODEBUG) -extldflags "$(CORE_LINK)"' -o $(@D)/libgpumemtop-core.so ./intercept
	@printf '{"Replace": {"$(CURDIR)/$(PAYLOAD)/libgpumemtop-core.so": "$(CURDIR)/$(@D)/libgpumemtop-core.so"}}\n' > $(@D)/carried.json
	$(GO) build -overlay $(@D)/carried.json -buildvcs=$(STAMP) -ldflags '-extldflags "-no-pie -Wl,--wrap=__libc_start_main $(FLOOR_LINK)"' -o $@ ./cmd/gpumemtop

.PHONY: fuzz
fuzz: $(LIBRARIES)
	test/fuzz.sh $(FUZZTIME) $(FUZZ)

.PHONY: bench
bench: all build/test-deps.stamp .tools/benchstat
	$(GO) run ./bench $(BENCHFLAGS)

# Anew after changes to what happens for each event or hit. Wants a machine with nothing else to do, for a minute.
.PHONY: pgo
pgo: all
	$(GO) test -run '^$$' -bench '^BenchmarkServe/hit/.*/threads=1$$' -cpuprofile $(CURDIR)/$(CORE_PROFILE) -o build/pgo.test ./intercept/broker
	$(GO) test -run '^$$' -bench '^BenchmarkRun$$' -benchtime 5x -cpuprofile $(CURDIR)/$(PROFILE) -o build/pgo.test ./cmd/gpumemtop

# Beside Intel's intercept layer for OpenCL, if INTEL_LAYER names a folder with its source (github.com/intel/opencl-intercept-layer).
PEERS := $(if $(INTEL_LAYER),build/intel-layer/intercept/libOpenCL.so.1)
.PHONY: bench-peers
bench-peers: all $(PEERS)
	INTEL_LAYER_LIB=$(if $(INTEL_LAYER),$(CURDIR)/build/intel-layer/intercept) $(GO) run ./bench -runs 11 -only peers

build/intel-layer/intercept/libOpenCL.so.1:
	cmake -S $(INTEL_LAYER) -B build/intel-layer -DCMAKE_BUILD_TYPE=Release
	$(MAKE) -C build/intel-layer OpenCL

# Only measurements need these: they are not in go.mod.
.tools/benchstat:
	@mkdir -p .tools
	GOBIN=$(CURDIR)/.tools $(GO) install golang.org/x/perf/cmd/benchstat@$(BENCHSTAT_VERSION)

.tools/gremlins:
	@mkdir -p .tools
	GOBIN=$(CURDIR)/.tools $(GO) install github.com/go-gremlins/gremlins/cmd/gremlins@$(GREMLINS_VERSION)

# --- checks ---------------------------------------------------------------------------------------------------------

.PHONY: check
check: check-format check-go check-lint check-c check-analyzers check-models check-generated

.PHONY: check-format
check-format:
	@files=$$(gofmt -l $$(find . -name '*.go' -not -path './.tools/*' -not -path './build/*')); \
	[ -z "$$files" ] || { echo "not formatted, run gofmt -w: $$files" >&2; exit 1; }

.PHONY: check-go
check-go:
	for module in . $(MODULES); do (cd $$module && $(GO) mod tidy -diff) || exit 1; done

# go vet and staticcheck are among what it runs. Another copy of it may run on the machine. With -trimpath the compiler's cache
# holds the cgo files of any checkout, and they name its whole path: a flag makes them this one's. What the linter remembers names paths, too.
# It collects garbage less often than usual, in a sixth less time.
LINT := GOGC=400 GOMEMLIMIT=4GiB CGO_CPPFLAGS='-DLINTED="$(CURDIR)"' GOLANGCI_LINT_CACHE=$(CURDIR)/build/lint$(CURDIR) $(CURDIR)/$(GOLANGCI) run --allow-parallel-runners ./...
.PHONY: check-lint
check-lint: $(GOLANGCI) $(LIBRARIES)
	for module in . $(MODULES); do (cd $$module && $(LINT)) || exit 1; done

# Not in go.mod, where it would add two hundred modules.
$(GOLANGCI): | go-version
	@mkdir -p .tools
	CGO_ENABLED=0 GOBIN=$(CURDIR)/.tools $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .tools/golangci-lint $@

# What make test-arm64 compiles, except the tests of walked call stacks, which are amd64's.
ARM64_TARGET := --target=aarch64-linux-gnu -isystem /usr/aarch64-linux-gnu/include

# Warnings of both compilers on everything, of one for 64-bit ARM. eBPF is for clang only.
.PHONY: check-c
check-c: | build/test-deps.stamp
	@{ \
		for compiler in $(CC) $(CLANG); do \
			for source in $(PROGRAM_SOURCES); do echo "$$compiler $(PROGRAM_FLAGS) $(MPI_FLAGS) -fsyntax-only $$source"; done; \
			for source in $(SHIM_SOURCES) $(CGO_SOURCES); do echo "$$compiler $(SHIM_FLAGS) -fsyntax-only $$source"; done; \
		done; \
		for source in $(SHIM_SOURCES) $(filter-out %/test_stack.c,$(wildcard shim/test/*.c)); do \
			echo "$(CLANG) $(ARM64_TARGET) $(filter-out -flto=auto -Wpedantic,$(SHIM_FLAGS)) -DGMT_TEST_STACKS -DFRAME=40 -fsyntax-only $$source"; \
		done; \
		for processor in x86 arm64; do \
			for source in $(BPF_SOURCES); do echo "$(CLANG) $(BPF_FLAGS) -D__TARGET_ARCH_$$processor -fsyntax-only $$source"; done; \
		done; \
	} | xargs -P "$$(nproc)" -I@ sh -c '@'
	@echo "C: no findings"

# Both analyzers on what runs inside other programs and in the kernel: a minute that make test does without.
.PHONY: check-analyzers
check-analyzers: | build/test-deps.stamp
	@{ \
		for source in $(SHIM_SOURCES); do \
			echo "$(CC) $(SHIM_FLAGS) -fanalyzer -c $$source -o /dev/null"; \
			echo "$(CLANG) $(ANALYZE) -std=gnu11 $$source"; \
		done; \
		for processor in x86 arm64; do \
			for source in $(BPF_SOURCES); do echo "$(CLANG) $(ANALYZE) $(BPF_FLAGS) -D__TARGET_ARCH_$$processor $$source"; done; \
		done; \
	} | xargs -P "$$(nproc)" -I@ sh -c '@'
	@echo "analyzers: no findings"

# Every state of the protocols of shim and session, and faults that have to be found: docs/models. make models: with larger bounds.
.PHONY: check-models models
check-models: | build/test-deps.stamp
	docs/models/check.sh
models: | build/test-deps.stamp
	LARGE=1 docs/models/check.sh

# Generated files are committed; generating them again must change nothing. Compares files, so that it works outside
# version control and with uncommitted changes.
SUMS = find . \( -name .git -o -name .tools -o -name bin -o -name build \) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum

.PHONY: check-generated
check-generated: | build/test-deps.stamp
	@$(SUMS) > build/before.sums
	BPF2GO_CC=$(CLANG) $(GO) generate ./...
	@$(SUMS) > build/after.sums
	@diff build/before.sums build/after.sums || { echo "generated files were out of date: commit what go generate made" >&2; exit 1; }

.PHONY: clean
clean:
	rm -rf bin build $(LIBRARIES)

.PHONY: FORCE
FORCE:
