package cl

// #include "driver.h"
import "C"

import (
	"bytes"
	"errors"
	"unsafe"
)

// Platform is an implementation of OpenCL.
type Platform struct{ id C.cl_platform_id }

// Device belongs to a platform.
type Device struct {
	platform C.cl_platform_id
	id       C.cl_device_id
}

// most is how many platforms, and devices of each, are looked at.
const most = 32

// PlatformIDs returns the platforms, none where no driver is installed.
func PlatformIDs() ([]Platform, error) {
	var ids [most]C.cl_platform_id
	var count C.cl_uint
	err := statusError("clGetPlatformIDs", C.driver_platforms(most, &ids[0], &count))
	if errors.Is(err, PlatformNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	platforms := make([]Platform, min(count, most))
	for i := range platforms {
		platforms[i].id = ids[i]
	}
	return platforms, nil
}

// DeviceIDs returns the platform's devices of all types, which may be none.
func (p Platform) DeviceIDs() ([]Device, error) {
	var ids [most]C.cl_device_id
	var count C.cl_uint
	err := statusError("clGetDeviceIDs", C.driver_devices(p.id, most, &ids[0], &count))
	if errors.Is(err, DeviceNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	devices := make([]Device, min(count, most))
	for i := range devices {
		devices[i] = Device{p.id, ids[i]}
	}
	return devices, nil
}

// textMost is how long names may be, with the 0 at their end.
const textMost = 1024

// driverText is what a driver wrote into a buffer, up to the 0 that ends it.
func driverText(buffer []byte, status C.cl_int) string {
	if status != C.CL_SUCCESS {
		return ""
	}
	text, _, _ := bytes.Cut(buffer, []byte{0})
	return string(bytes.TrimSpace(text))
}

// Name is CL_PLATFORM_NAME, "" where the driver does not tell.
func (p Platform) Name() string {
	var buffer [textMost]byte
	return driverText(buffer[:], C.driver_platform_info(p.id, C.CL_PLATFORM_NAME, textMost-1, unsafe.Pointer(&buffer[0]), nil))
}

func (d Device) infoText(what C.cl_device_info) string {
	var buffer [textMost]byte
	return driverText(buffer[:], C.driver_device_info(d.id, what, textMost-1, unsafe.Pointer(&buffer[0]), nil))
}

// Name is CL_DEVICE_NAME, "" where the driver does not tell.
func (d Device) Name() string { return d.infoText(C.CL_DEVICE_NAME) }

// DriverVersion is CL_DRIVER_VERSION, "" where the driver does not tell.
func (d Device) DriverVersion() string { return d.infoText(C.CL_DRIVER_VERSION) }

// Version is CL_DEVICE_VERSION, "" where the driver does not tell.
func (d Device) Version() string { return d.infoText(C.CL_DEVICE_VERSION) }

func (d Device) infoUint(what C.cl_device_info) uint32 {
	var value C.cl_uint
	if C.driver_device_info(d.id, what, C.sizeof_cl_uint, unsafe.Pointer(&value), nil) != C.CL_SUCCESS {
		return 0
	}
	return uint32(value)
}

func (d Device) infoUlong(what C.cl_device_info) uint64 {
	var value C.cl_ulong
	if C.driver_device_info(d.id, what, C.sizeof_cl_ulong, unsafe.Pointer(&value), nil) != C.CL_SUCCESS {
		return 0
	}
	return uint64(value)
}

// MemBaseAddrAlign is CL_DEVICE_MEM_BASE_ADDR_ALIGN in bytes (OpenCL counts it in bits); 0 where the driver does not
// tell, as with the others.
func (d Device) MemBaseAddrAlign() uint32 { return d.infoUint(C.CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8 }

// GlobalMemCachelineSize is CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, bytes.
func (d Device) GlobalMemCachelineSize() uint32 {
	return d.infoUint(C.CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE)
}

// MaxComputeUnits is CL_DEVICE_MAX_COMPUTE_UNITS.
func (d Device) MaxComputeUnits() uint32 { return d.infoUint(C.CL_DEVICE_MAX_COMPUTE_UNITS) }

// HostUnifiedMemory is CL_DEVICE_HOST_UNIFIED_MEMORY: device and host share their memory.
func (d Device) HostUnifiedMemory() bool { return d.infoUint(C.CL_DEVICE_HOST_UNIFIED_MEMORY) != 0 }

// MaxMemAllocSize is CL_DEVICE_MAX_MEM_ALLOC_SIZE, bytes.
func (d Device) MaxMemAllocSize() uint64 { return d.infoUlong(C.CL_DEVICE_MAX_MEM_ALLOC_SIZE) }

// GlobalMemSize is CL_DEVICE_GLOBAL_MEM_SIZE, bytes.
func (d Device) GlobalMemSize() uint64 { return d.infoUlong(C.CL_DEVICE_GLOBAL_MEM_SIZE) }

// LocalMemSize is CL_DEVICE_LOCAL_MEM_SIZE, bytes.
func (d Device) LocalMemSize() uint64 { return d.infoUlong(C.CL_DEVICE_LOCAL_MEM_SIZE) }

// MaxConstantBufferSize is CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, bytes.
func (d Device) MaxConstantBufferSize() uint64 {
	return d.infoUlong(C.CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE)
}

// ImageSupport is CL_DEVICE_IMAGE_SUPPORT.
func (d Device) ImageSupport() bool { return d.infoUint(C.CL_DEVICE_IMAGE_SUPPORT) != 0 }

func (d Device) infoSize(what C.cl_device_info) uint64 {
	var value C.size_t
	if C.driver_device_info(d.id, what, C.sizeof_size_t, unsafe.Pointer(&value), nil) != C.CL_SUCCESS {
		return 0
	}
	return uint64(value)
}

// Image2DMaxWidth is CL_DEVICE_IMAGE2D_MAX_WIDTH, pixels.
func (d Device) Image2DMaxWidth() uint64 { return d.infoSize(C.CL_DEVICE_IMAGE2D_MAX_WIDTH) }

// Image2DMaxHeight is CL_DEVICE_IMAGE2D_MAX_HEIGHT, pixels.
func (d Device) Image2DMaxHeight() uint64 { return d.infoSize(C.CL_DEVICE_IMAGE2D_MAX_HEIGHT) }
