package main

import (
	"slices"
	"strings"
)

// What of the environment a recording keeps: what decides which device and driver a program finds and how these behave.
// Nothing else, for the environment may hold secrets.
var (
	recordedPrefixes = []string{
		"OCL_", "OPENCL_", "POCL_", "CL_", "CUDA_CACHE_", "RUSTICL_", "GPUMEMTOP_",
	}
	recordedNames = []string{
		"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
		"GPU_DEVICE_ORDINAL", "GPU_MAX_ALLOC_PERCENT", "GPU_MAX_HEAP_SIZE", "GPU_SINGLE_ALLOC_PERCENT", "GPU_FORCE_64BIT_PTR",
		"ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR", "LD_LIBRARY_PATH", "OMP_NUM_THREADS",
	}
	// Parts of names that are not kept whatever they begin with.
	secretWords = []string{"SECRET", "TOKEN", "PASSW", "CREDENTIAL", "KEY", "AUTH"}
)

const (
	recordedMax      = 256  // variables
	recordedValueMax = 1024 // bytes; longer values are cut
)

// recorded returns the variables that a recording keeps.
func recorded(environment []string) map[string]string {
	kept := map[string]string{}
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if !mayRecord(name) || len(kept) == recordedMax || len(name) > recordedValueMax {
			continue
		}
		value = strings.ToValidUTF8(value, "?")
		if len(value) > recordedValueMax {
			const more = "…"
			// What is left of a character that the cut went through goes, too.
			value = strings.ToValidUTF8(value[:recordedValueMax-len(more)], "") + more
		}
		kept[strings.ToValidUTF8(name, "?")] = value
	}
	return kept
}

// mayRecord reports whether a variable is one that a recording keeps.
func mayRecord(name string) bool {
	if slices.Contains(recordedNames, name) {
		return true
	}
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	upper := strings.ToUpper(name)
	hides := func(word string) bool { return strings.Contains(upper, word) }
	return slices.ContainsFunc(recordedPrefixes, begins) && !slices.ContainsFunc(secretWords, hides)
}
