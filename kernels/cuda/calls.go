//go:build (linux || windows) && (amd64 || arm64)

package cuda

// entry numbers the symbols of the driver library.
type entry int

const (
	cuInit entry = iota
	cuDriverGetVersion
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceTotalMem
	cuDeviceGetAttribute
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxSetCurrent
	cuCtxSynchronize
	cuMemGetInfo
	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuMemAlloc
	cuMemFree
	cuMemHostAlloc
	cuMemFreeHost
	cuMemHostRegister
	cuMemHostUnregister
	cuMemHostGetDevicePointer
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync
	cuMemcpyDtoDAsync
	cuMemsetD8Async
	cuStreamCreate
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamWaitEvent
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventSynchronize
	cuEventElapsedTime
	cuLaunchKernel
	entries
)

// symbol returns the call's name in the library. Where cuda.h renames a call to a version, the
// version is part of the name; the plain name is an old call with 32-bit sizes.
func (e entry) symbol() string {
	return [entries]string{
		cuInit:                    "cuInit",
		cuDriverGetVersion:        "cuDriverGetVersion",
		cuDeviceGetCount:          "cuDeviceGetCount",
		cuDeviceGet:               "cuDeviceGet",
		cuDeviceGetName:           "cuDeviceGetName",
		cuDeviceTotalMem:          "cuDeviceTotalMem_v2",
		cuDeviceGetAttribute:      "cuDeviceGetAttribute",
		cuDevicePrimaryCtxRetain:  "cuDevicePrimaryCtxRetain",
		cuDevicePrimaryCtxRelease: "cuDevicePrimaryCtxRelease_v2",
		cuCtxSetCurrent:           "cuCtxSetCurrent",
		cuCtxSynchronize:          "cuCtxSynchronize",
		cuMemGetInfo:              "cuMemGetInfo_v2",
		cuModuleLoadDataEx:        "cuModuleLoadDataEx",
		cuModuleUnload:            "cuModuleUnload",
		cuModuleGetFunction:       "cuModuleGetFunction",
		cuMemAlloc:                "cuMemAlloc_v2",
		cuMemFree:                 "cuMemFree_v2",
		cuMemHostAlloc:            "cuMemHostAlloc",
		cuMemFreeHost:             "cuMemFreeHost",
		cuMemHostRegister:         "cuMemHostRegister_v2",
		cuMemHostUnregister:       "cuMemHostUnregister",
		cuMemHostGetDevicePointer: "cuMemHostGetDevicePointer_v2",
		cuMemcpyHtoDAsync:         "cuMemcpyHtoDAsync_v2",
		cuMemcpyDtoHAsync:         "cuMemcpyDtoHAsync_v2",
		cuMemcpyDtoDAsync:         "cuMemcpyDtoDAsync_v2",
		cuMemsetD8Async:           "cuMemsetD8Async",
		cuStreamCreate:            "cuStreamCreate",
		cuStreamDestroy:           "cuStreamDestroy_v2",
		cuStreamSynchronize:       "cuStreamSynchronize",
		cuStreamWaitEvent:         "cuStreamWaitEvent",
		cuEventCreate:             "cuEventCreate",
		cuEventDestroy:            "cuEventDestroy_v2",
		cuEventRecord:             "cuEventRecord",
		cuEventSynchronize:        "cuEventSynchronize",
		cuEventElapsedTime:        "cuEventElapsedTime",
		cuLaunchKernel:            "cuLaunchKernel",
	}[e]
}
