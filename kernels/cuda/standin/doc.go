// Package standin is a CUDA device for tests on machines without one. It is a library with the
// driver's symbols, built by the host's C++ compiler from the kernels' own source, with knobs for
// tests. It is an emulation: its device says so in its name, and it gives no times.
//
// library/driver.cc says what it checks; library/fibers.cc how threads are run. It needs Linux and
// a C++ compiler; the tests that need it are skipped elsewhere.
package standin
