# Builds gpumemtop and everything around it on Debian with Go. Start with "make", or "make demo" to see it work.
#
#   make          bin/gpumemtop and bin/examples/*
#   make demo     run an example under the dashboard, then export the recording as JSON
#   make test     build, tests of the shim under sanitizers, all Go tests with the race detector, then make check
#   make check    formatting, static analysis of Go and C, generated files up to date
#   make soak     random programs, bare and under every policy: SEEDS=2000 of them, from FIRST=1 on
#   make bench    what it costs and what it saves, measured on this machine
#   make screenshot   docs/dashboard.svg, anew
#   make deps     install the Debian packages that are missing (part of everything above)
#   make clean    remove what was built

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:

# Everything that is needed beyond Go and make: compilers; an OpenCL that runs anywhere, its loader and headers; the
# real programs that the tests run; the terminal and the browser that they drive; a reader of what is exported.
PACKAGES := gcc g++ libc6-dev binutils clang llvm libbpf-dev \
	pocl-opencl-icd ocl-icd-libopencl1 ocl-icd-opencl-dev opencl-headers \
	clinfo clpeak hashcat clblast-utils sudo ffmpeg openmpi-bin libopenmpi-dev tmux chromium python3

GO ?= go
CC := gcc
CLANG ?= clang
GOLANGCI_VERSION := v2.15.0
GOLANGCI := .tools/golangci-lint-$(GOLANGCI_VERSION)

WARNINGS := -Wall -Wextra -Werror -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wvla \
	-Wformat=2
EXAMPLE_FLAGS := -std=c11 -O2 -g $(WARNINGS)
SHIM_FLAGS := -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -pthread $(WARNINGS)
SHIM_LINK := -shared -static-libgcc -Wl,--version-script=shim/shim.map -Wl,-z,now -Wl,-z,defs -Wl,-z,nodelete \
	-Wl,-Bsymbolic-functions -ldl

# As tracer/kernel/kernel.go has it made; -g is for the types that the kernel is told.
BPF_FLAGS := -target bpf -D__TARGET_ARCH_x86 -std=gnu11 -O2 -g -ffreestanding -Iinternal/wire -I/usr/include/x86_64-linux-gnu \
	-Wall -Wextra -Werror -Wshadow -Wno-unused-parameter

BPF_SOURCES := $(wildcard tracer/kernel/bpf/*.c)
SHIM_SOURCES := $(wildcard shim/*.c)
SHIM_HEADERS := $(wildcard shim/*.h shim/*.def) internal/wire/event.h
EXAMPLES := $(filter-out common gpu,$(basename $(notdir $(wildcard examples/*.c))))
FAULTS := $(filter-out work,$(basename $(notdir $(wildcard examples/faults/*.c))))
# Those that are more than one file have a folder each.
FOLDERS := queries conformance soak
EXAMPLE_BINS := $(addprefix bin/examples/,$(EXAMPLES) $(FOLDERS) $(FOLDERS:%=%-buffers)) $(addprefix bin/examples/faults/,$(FAULTS)) bin/examples/ranks
EXAMPLE_SOURCES := $(wildcard examples/*.c examples/faults/*.c examples/mpi/*.c $(FOLDERS:%=examples/%/*.c))
EXAMPLE_HEADERS := $(wildcard examples/*.h examples/faults/*.h $(FOLDERS:%=examples/%/*.h))
LIBRARIES := internal/payload/lib/libgpumemtop.so internal/payload/lib/libgpumemtop-core.so

# Version control is stamped into the binary where there is any that git trusts.
STAMP := $(if $(shell git rev-parse HEAD 2>/dev/null),auto,false)

# For make test, make demo and make bench, for example: make test TESTFLAGS=-v
TESTFLAGS ?=
DEMO_ARGUMENTS ?= 60 32M
BENCHFLAGS ?=
SEEDS ?= 2000
FIRST ?= 1

.PHONY: all
all: bin/gpumemtop examples

.PHONY: examples
examples: $(EXAMPLE_BINS)

# --- packages -------------------------------------------------------------------------------------------------------

.PHONY: deps
deps: build/deps.stamp

build/deps.stamp: Makefile
	@mkdir -p build
	@missing=(); \
	for package in $(PACKAGES); do \
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

build/libgpumemtop.so: $(SHIM_SOURCES) $(SHIM_HEADERS) shim/shim.map Makefile | build/deps.stamp
	$(CC) $(SHIM_FLAGS) $(SHIM_SOURCES) $(SHIM_LINK) -o $@

# go build knows best what changed; it is asked every time.
build/libgpumemtop-core.so: FORCE | build/deps.stamp
	$(GO) build -buildmode=c-shared -buildvcs=false -trimpath \
		-ldflags='-s -w -X=runtime.godebugDefault=asyncpreemptoff=1 -extldflags=-Wl,--version-script=$(CURDIR)/intercept/intercept.map' -o $@ ./intercept

# Copied only when different, so that an unchanged library does not rebuild the command.
internal/payload/lib/%.so: build/%.so
	@cmp -s $< $@ || cp $< $@

bin/gpumemtop: FORCE $(LIBRARIES)
	@mkdir -p bin
	$(GO) build -buildvcs=$(STAMP) -trimpath -o $@ ./cmd/gpumemtop

# --- examples -------------------------------------------------------------------------------------------------------

.PRECIOUS: build/obj/%.o build/obj/buffers/%.o
build/obj/%.o: examples/%.c $(EXAMPLE_HEADERS) Makefile | build/deps.stamp
	@mkdir -p $(@D)
	$(CC) $(EXAMPLE_FLAGS) -pthread -c $< -o $@

# Without images, and so in front of any driver with buffers that are parts of slabs.
build/obj/buffers/%.o: examples/%.c $(EXAMPLE_HEADERS) Makefile | build/deps.stamp
	@mkdir -p $(@D)
	$(CC) $(EXAMPLE_FLAGS) -DWITHOUT_IMAGES -pthread -c $< -o $@

# The one for MPI, whose headers are not held to our warnings: -isystem, and a compiler that knows where they are.
MPI_FLAGS = $(patsubst -I%,-isystem %,$(shell mpicc --showme:compile))

build/obj/mpi/%.o: examples/mpi/%.c $(EXAMPLE_HEADERS) Makefile | build/deps.stamp
	@mkdir -p $(@D)
	$(CC) $(EXAMPLE_FLAGS) $(MPI_FLAGS) -c $< -o $@

bin/examples/ranks: build/obj/mpi/ranks.o build/obj/gpu.o build/obj/common.o
	@mkdir -p $(@D)
	mpicc $^ -o $@ -lOpenCL

# The one that finds OpenCL by itself, and the one that has none.
bin/examples/dynamic: build/obj/dynamic.o build/obj/common.o
	@mkdir -p $(@D)
	$(CC) $^ -o $@ -ldl

bin/examples/faults/nocl: build/obj/faults/nocl.o
	@mkdir -p $(@D)
	$(CC) $^ -o $@

objects = $(patsubst examples/%.c,$(2)/%.o,$(wildcard examples/$(1)/*.c)) build/obj/gpu.o build/obj/common.o

define folder
bin/examples/$(1): $(call objects,$(1),build/obj)
bin/examples/$(1)-buffers: $(call objects,$(1),build/obj/buffers)
endef
$(foreach name,$(FOLDERS),$(eval $(call folder,$(name))))
$(FOLDERS:%=bin/examples/%) $(FOLDERS:%=bin/examples/%-buffers):
	@mkdir -p $(@D)
	$(CC) $^ -o $@ -pthread -lOpenCL

bin/examples/faults/%: build/obj/faults/%.o build/obj/faults/work.o build/obj/gpu.o build/obj/common.o
	@mkdir -p $(@D)
	$(CC) $^ -o $@ -pthread -lOpenCL

bin/examples/%: build/obj/%.o build/obj/gpu.o build/obj/common.o
	@mkdir -p $(@D)
	$(CC) $^ -o $@ -pthread -lOpenCL

# --- demo, tests, measurements --------------------------------------------------------------------------------------

.PHONY: demo
demo: all
	@headless=--headless; \
	if [ -t 0 ] && [ -t 1 ]; then headless=; fi; \
	bin/gpumemtop $$headless -f -o build/demo.gmt -- bin/examples/pipeline $(DEMO_ARGUMENTS) || [ $$? -gt 128 ] # stopped by you
	@bin/gpumemtop export build/demo.gmt --format chrome -f -o build/demo.json
	@echo "recording: build/demo.gmt (bin/gpumemtop report build/demo.gmt)"
	@echo "JSON:      build/demo.json (open it at https://ui.perfetto.dev or in chrome://tracing)"

# The picture in the README: the real dashboard around a real program, drawn from what the terminal shows.
SHOT := tmux -L gpumemtop-screenshot -f /dev/null

.PHONY: screenshot
screenshot: all
	$(SHOT) new-session -d -x 120 -y 36 'cd bin/examples && ../gpumemtop -f -o ../../build/shot.gmt ./train 1000000'
	sleep 12
	$(SHOT) send-keys s
	$(SHOT) send-keys j '['
	sleep 0.4
	$(SHOT) capture-pane -ep | $(GO) run ./internal/tools/ansisvg > docs/dashboard.svg
	$(SHOT) kill-server

# A line for each test that could not run because the kernel lets nobody watch here (tracer/rights/rightstest).
SKIPPED := $(CURDIR)/build/skipped.txt

.PHONY: test
test: all
	$(MAKE) shim-test
	@rm -f $(SKIPPED)
	RIGHTSTEST_SKIPPED=$(SKIPPED) $(GO) test -race -count=1 -timeout 18m $(TESTFLAGS) ./...
	@if [ -e $(SKIPPED) ]; then \
		echo "skipped for want of eBPF: $$(wc -l < $(SKIPPED)) tests ($$(cut -f 1 $(SKIPPED) | sort | paste -s -d ' '))"; \
		cut -f 2 $(SKIPPED) | sort -u; \
	else echo "no test was skipped for want of eBPF"; fi
	$(MAKE) check

.PHONY: shim-test
shim-test: | build/deps.stamp
	@bash shim/test/run.sh

# What it finds it prints as a line for e2e/testdata/soak.txt. Run in the folder: only then is the output of a test that
# passes shown.
.PHONY: soak
soak: all
	cd e2e && $(GO) test -run '^TestSoak$$' -count=1 -timeout 0 $(TESTFLAGS) -args -soak.seeds=$(SEEDS) -soak.first=$(FIRST)

.PHONY: bench
bench: all
	$(GO) run ./bench $(BENCHFLAGS)

# --- checks ---------------------------------------------------------------------------------------------------------

.PHONY: check
check: check-format check-go check-lint check-c check-generated

.PHONY: check-format
check-format:
	@files=$$(gofmt -l $$(find . -name '*.go' -not -path './.tools/*' -not -path './build/*')); \
	[ -z "$$files" ] || { echo "not formatted, run gofmt -w: $$files" >&2; exit 1; }

.PHONY: check-go
check-go: $(LIBRARIES)
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) mod tidy -diff

.PHONY: check-lint
check-lint: $(GOLANGCI) $(LIBRARIES)
	$(GOLANGCI) run ./...

# Installed here and not through go.mod: it would bring two hundred modules with it.
$(GOLANGCI):
	@mkdir -p .tools
	GOBIN=$(CURDIR)/.tools $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .tools/golangci-lint $@

# Both compilers' warnings on everything; both analyzers on what runs inside other people's programs. What runs inside
# the kernel is a matter of clang alone.
.PHONY: check-c
check-c: | build/deps.stamp
	@for compiler in $(CC) $(CLANG); do \
		for source in $(EXAMPLE_SOURCES); do "$$compiler" $(EXAMPLE_FLAGS) $(MPI_FLAGS) -fsyntax-only "$$source"; done; \
		for source in $(SHIM_SOURCES); do "$$compiler" $(SHIM_FLAGS) -fsyntax-only "$$source"; done; \
	done
	@for source in $(SHIM_SOURCES); do \
		$(CC) $(SHIM_FLAGS) -fanalyzer -c "$$source" -o /dev/null; \
		$(CLANG) --analyze --analyzer-output text -Xclang -analyzer-werror -std=gnu11 "$$source"; \
	done
	@for source in $(BPF_SOURCES); do \
		$(CLANG) $(BPF_FLAGS) -fsyntax-only "$$source"; \
		$(CLANG) --analyze --analyzer-output text -Xclang -analyzer-werror $(BPF_FLAGS) "$$source"; \
	done
	@echo "C: no findings"

# Whatever is generated is committed; generating it again must change nothing. Asked of the files themselves, so that
# it also works outside version control and with uncommitted changes.
SUMS = find . \( -name .git -o -name .tools -o -name bin -o -name build \) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum

.PHONY: check-generated
check-generated: | build/deps.stamp
	@$(SUMS) > build/before.sums
	BPF2GO_CC=$(CLANG) $(GO) generate ./...
	@$(SUMS) > build/after.sums
	@diff build/before.sums build/after.sums || { echo "generated files were out of date: commit what go generate made" >&2; exit 1; }

.PHONY: clean
clean:
	rm -rf bin build $(LIBRARIES)

.PHONY: FORCE
FORCE:
