// Package standin is a CUDA device for tests on machines that have none: a library with the
// driver's symbols, built by the host's C++ compiler from the kernels' own source, and the knobs of
// it that tests turn. It is an emulation: its device says so in its name, and it gives no times.
//
// library/driver.cc says what it is strict about; library/fibers.cc how threads are run. It is for
// Linux, where a C++ compiler is; tests that need it are skipped elsewhere.
package standin
