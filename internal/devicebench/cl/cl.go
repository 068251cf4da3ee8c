// Package cl is a thin binding of the few OpenCL functions that gpumemtop calls itself. Names are OpenCL's without
// their "cl". The library is loaded at run time: without one, Load returns an error and nothing else may be called.
//
// What a driver does wrong it does to the whole process: call it in one that may die.
package cl

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// library is the name under which every ICD loader can be found.
const library = "libOpenCL.so.1"

// Status is what an OpenCL function returned other than CL_SUCCESS.
type Status int32

// The statuses that this package distinguishes (CL/cl.h, CL/cl_ext.h).
const (
	DeviceNotFound             Status = C.CL_DEVICE_NOT_FOUND
	MemObjectAllocationFailure Status = C.CL_MEM_OBJECT_ALLOCATION_FAILURE
	OutOfResources             Status = C.CL_OUT_OF_RESOURCES
	OutOfHostMemory            Status = C.CL_OUT_OF_HOST_MEMORY
	InvalidBufferSize          Status = C.CL_INVALID_BUFFER_SIZE
	PlatformNotFound           Status = -1001 // CL_PLATFORM_NOT_FOUND_KHR
)

// Error implements error.
func (s Status) Error() string {
	if name := wire.StatusName(int32(s)); name != "" {
		return name
	}
	return fmt.Sprintf("OpenCL error %d", int32(s))
}

// statusError says which function returned a status, nil for CL_SUCCESS.
func statusError(function string, status C.cl_int) error {
	if status == C.CL_SUCCESS {
		return nil
	}
	return fmt.Errorf("%s: %w", function, Status(status))
}

// Load loads the OpenCL library and, with it, often all drivers. Any goroutine may call it, any number of times.
var Load = sync.OnceValue(func() error {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	if wrong := C.driver_load(name); wrong != nil {
		return fmt.Errorf("load OpenCL: %s", C.GoString(wrong))
	}
	return nil
})

// EmptyCallTime is the time that a call would seem to take that did nothing: what each of the timed functions measures too
// much.
func EmptyCallTime() time.Duration { return time.Duration(C.driver_nothing()) }
