package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// layerVariable names the folder with the libOpenCL.so.1 of Intel's intercept layer; without it our own rows remain.
const layerVariable = "INTEL_LAYER_LIB"

// compareWithInterceptLayer compares single calls under gpumemtop with those under Intel's intercept layer for OpenCL.
func (b *bench) compareWithInterceptLayer() error {
	modes := []mode{bare}
	if lib := os.Getenv(layerVariable); lib != "" {
		loader, err := b.loaderPath()
		if err != nil {
			return err
		}
		env := []string{"LD_PRELOAD=" + lib + "/libOpenCL.so.1", "CLI_OpenCLFileName=" + loader, "CLI_DumpDir=" + b.temp}
		modes = append(modes, mode{name: "Intel, idle", env: env},
			mode{name: "Intel, host timing", env: append(slices.Clone(env), "CLI_HostPerformanceTiming=1")},
			mode{name: "Intel, Chrome log", env: append(slices.Clone(env), "CLI_ChromeCallLogging=1")})
	}
	for _, policy := range []string{"none", "futhark", "slab"} {
		modes = append(modes, mode{name: policy + ", caller tags", policy: policy, flags: []string{"--tags", "caller"}},
			mode{name: policy + ", default", policy: policy})
	}
	results, err := b.runInTurns(1, modes, b.testProgramPath("callcost"))
	if err != nil {
		return err
	}
	b.printCallCosts(modes, results, callFigures)
	return nil
}

// loaderPath returns the path of the library that programs here are linked with, which Intel's layer calls.
func (b *bench) loaderPath() (string, error) {
	text, err := exec.Command("ldd", b.testProgramPath("callcost")).Output()
	if err != nil {
		return "", fmt.Errorf("ldd: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "libOpenCL.so.1" {
			return fields[2], nil
		}
	}
	return "", errors.New("callcost is not linked with libOpenCL.so.1")
}
