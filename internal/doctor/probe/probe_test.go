package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/session/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func script(t *testing.T, text string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "carrier")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{"/nonexistent", path}
}

// A driver that hangs or crashes takes its own process with it, and what it said before is kept.
func TestDriverThatHangsTakesItsOwnProcess(t *testing.T) {
	out, err := runFirstCarrier(t.Context(), script(t, "echo preloaded $WHAT; echo end"), []string{"WHAT=x"})
	if err != nil || string(out) != "preloaded x\nend\n" {
		t.Errorf("well: %q, %v", out, err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("no answer"))
	defer cancel()
	out, err = runFirstCarrier(ctx, script(t, "echo preloaded; exec sleep 1000"), nil)
	if err == nil || err.Error() != "no answer" {
		t.Errorf("hangs: %q, %v", out, err)
	}
	out, err = runFirstCarrier(t.Context(), script(t, "echo preloaded; echo trouble >&2; kill -SEGV $$"), nil)
	if err == nil || !strings.Contains(err.Error(), "segmentation fault") || !strings.HasSuffix(err.Error(), ": trouble") || string(out) != "preloaded\n" {
		t.Errorf("crashes: %q, %v", out, err)
	}
	if _, err = runFirstCarrier(t.Context(), []string{"/nonexistent"}, nil); err == nil {
		t.Error("there is no carrier")
	}
}

// A caller that gives up early does not cut the drivers short.
func TestImpatientCallerCutsNoDriverShort(t *testing.T) {
	began, other := niceness, currentNiceness()+1
	if other > 19 {
		t.Skip("started at the lowest priority there is: there is no other to begin with")
	}
	niceness = other
	defer func() { niceness = began }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := runFirstCarrier(ctx, script(t, fmt.Sprintf("until [ \"$(nice)\" = %d ]; do :; done; echo end", other)), nil); err != nil || string(out) != "end\n" {
		t.Errorf("not at niceness %d: %q, %v", other, out, err)
	}
}

func TestInherited(t *testing.T) {
	got := EnvironmentWithoutPreloads([]string{"A=1", "LD_PRELOAD=/x", "OPENCL_LAYERS=/y", "GPUMEMTOP_SESSION=/z", "GPUMEMTOP_PROBE=w", "OCL_ICD_VENDORS=/v"})
	if !slices.Equal(got, []string{"A=1", "OCL_ICD_VENDORS=/v"}) {
		t.Errorf("got %q", got)
	}
}

// The folder is gone afterwards; where no process is left to remove it, sessions recognise it by its name.
func TestRunsFolder(t *testing.T) {
	built(t)
	defer func(list []string) { carriers = list }(carriers)
	carriers = script(t, "echo $LD_PRELOAD")
	out, err := RunWithPreload(t.Context(), nil)
	folder := filepath.Dir(string(out))
	if err != nil || !strings.HasPrefix(filepath.Base(folder), fmt.Sprintf("gpumemtop-%d-", os.Getpid())) {
		t.Errorf("it was in %s, %v", folder, err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func built(t *testing.T) {
	t.Helper()
	if _, err := payload.OpenShim(); errors.Is(err, payload.ErrNotBuilt) {
		t.Fatal(err) // make builds it before it tests
	}
}

func TestRun(t *testing.T) {
	built(t)
	out, err := RunWithPreload(t.Context(), []string{wire.ProbeEnv + "=libc.so.6"})
	if err != nil || string(out) != "preloaded\nend\n" {
		t.Errorf("%q, %v", out, err)
	}
}
