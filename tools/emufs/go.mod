module github.com/windrow-sim/windrow/tools/emufs

go 1.26.0

require (
	github.com/hanwen/go-fuse/v2 v2.12.1
	github.com/windrow-sim/windrow v0.0.0
)

require (
	github.com/pawelgaczynski/giouring v0.0.0-20230826085535-69588b89acb9 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/tools v0.30.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
)

replace github.com/windrow-sim/windrow => ../..
