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
		wanted := slices.Contains(recordedNames, name) ||
			slices.ContainsFunc(recordedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if !wanted || len(kept) == recordedMax || len(name) > recordedValueMax {
			continue
		}
		if len(value) > recordedValueMax {
			value = value[:recordedValueMax] + "…"
		}
		kept[strings.ToValidUTF8(name, "?")] = strings.ToValidUTF8(value, "?")
	}
	return kept
}
