# Two commands are enough on a fresh machine: make demo, make test.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

MODULE  := github.com/sandbox-exec-shim/sandbox-exec-shim
VERSION := $(shell cat VERSION)

# Where the binaries go, and for which machine: make build BIN=/tmp/x GOARCH=arm64
BIN    := bin
GOARCH := $(shell go env GOARCH 2>/dev/null)

# The entry point and the marker of the shim.
include shim/boot/ldflags.mk

# No path, setting, time or commit of the building machine may reach a binary.
# cgo would bring the C library and its loader, and ignores the entry point.
GO_BUILD := CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH) GOAMD64=v1 GOARM64=v8.0 GOFLAGS=$(OVERLAY:%=-overlay=%) \
	go build -trimpath -buildvcs=false
LDFLAGS  := -s -w -buildid=
# The shim is read from a cold disk and copied into images, so its size counts.
# Inlining outside of the runtime adds 120 KB and functions aligned to 32 bytes
# 65 KB (amd64), and launches are no quicker for it. In the runtime inlining
# takes 32 KB and is worth a few hundredths of a launch.
SHIM_GCFLAGS := -gcflags=all=-l -gcflags=runtime=
# No launch lives to a collection: the older collector is 45 KB smaller and starts
# 5 % faster. A Go that has it no more builds with its own.
SHIM_EXPERIMENT := $(shell GOEXPERIMENT=nogreenteagc go env GOEXPERIMENT 2>/dev/null)
# Files in the place of others, for tests of the tests (go build -overlay).
OVERLAY :=
# Build tags of the shim: make build TAGS=nocommandcheck
TAGS :=
# The shim reads no flag: install-shim finds its version in the file.
SHIM_LDFLAGS    := $(LDFLAGS) -funcalign=8 -X main.version=sandbox-exec-shim-version=$(VERSION); $(BOOT_LDFLAGS)
INSTALL_LDFLAGS := $(LDFLAGS) -X main.version=$(VERSION)

# Packages that must also work where the shim does not.
PORTABLE := ./pathcheck/... ./rules/...
# The race detector needs cgo, so it runs where nothing depends on the
# static build.
RACE := ./pathcheck/... ./rules/...

GOLANGCI_VERSION := 2.15.0
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sandbox-exec-shim-tools
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)

FUZZTIME := 10s
TESTFLAGS :=
# Never from the cache: what the tests try is the machine, too.
GO_TEST := -count=1 -timeout 30m -json

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

.PHONY: need-go
need-go:
	@command -v go >/dev/null || { \
	  echo "make: Go is missing: install Go 1.26 or later (https://go.dev/dl), then try again" >&2; exit 1; }

.PHONY: build
build: need-go ## both binaries, static, into $(BIN)
	@mkdir -p '$(BIN)'
	GOEXPERIMENT='$(SHIM_EXPERIMENT)' $(GO_BUILD) -tags '$(TAGS)' $(SHIM_GCFLAGS) -ldflags '$(SHIM_LDFLAGS)' -o '$(BIN)/sandbox-exec-shim' ./cmd/sandbox-exec-shim
	$(GO_BUILD) -ldflags '$(INSTALL_LDFLAGS)' -o '$(BIN)/install-shim' ./cmd/install-shim

.PHONY: cross
cross: need-go ## both binaries for amd64 and arm64, into $(BIN)/<arch>
	@for arch in amd64 arm64; do $(MAKE) --no-print-directory build GOARCH=$$arch BIN='$(BIN)'/$$arch; done

.PHONY: demo
demo: build ## what it does, shown on a throw-away project
	@examples/demo.sh '$(BIN)'

.PHONY: test
test: need-go build ## all tests that this machine can run
	@go build -buildvcs=false -o '$(BIN)/test-summary' ./tests/summary
	@status=0; \
	go test $(GO_TEST) $(TESTFLAGS) ./... | '$(BIN)/test-summary' || status=1; \
	if command -v '$(or $(CC),cc)' >/dev/null; then \
	  echo; echo "with the race detector:"; \
	  CGO_ENABLED=1 go test -race $(GO_TEST) $(TESTFLAGS) $(RACE) | '$(BIN)/test-summary' || status=1; \
	else \
	  echo "not run: the race detector (needs a C compiler)"; \
	  if [ -n "$${CI:-}" ]; then status=1; fi; \
	fi; \
	exit $$status

.PHONY: bench
bench: build ## what a launch costs, side by side
	@go run ./tests/bench -bin '$(BIN)'

.PHONY: mutants
mutants: need-go ## small changes for the worse: does a test notice each?
	@go run ./tests/mutants

.PHONY: fuzz
fuzz: need-go ## every fuzz target for $(FUZZTIME)
	@for pkg in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; \
	    go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

.PHONY: lint
lint: need-go $(GOLANGCI) ## formatting, go vet, golangci-lint
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "gofmt -w is needed for:" >&2; echo "$$unformatted" >&2; exit 1; fi
	go vet ./...
	GOARCH=arm64 go vet ./...
	GOOS=darwin go vet $(PORTABLE)
	'$(GOLANGCI)' run ./...

# Built once for each user, outside of this module: the linter's dependencies
# are none of ours.
$(GOLANGCI): | need-go
	@echo "lint: golangci-lint $(GOLANGCI_VERSION) is missing; building it takes some minutes, once"
	@mkdir -p '$(TOOLS)'
	@GOBIN='$(TOOLS)/bin' GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(GOLANGCI_VERSION) || { \
	  echo "lint: cannot build golangci-lint $(GOLANGCI_VERSION): put that version at $(GOLANGCI)" >&2; exit 1; }
	@mv '$(TOOLS)/bin/golangci-lint' '$(GOLANGCI)'

# The second build starts from an empty cache, in another directory: an object
# taken from the first one's cache would hide what differs.
.PHONY: repro
repro: need-go ## two builds in two directories must be equal byte for byte
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	mkdir -p "$$tmp/a" "$$tmp/another/directory" "$$tmp/cache"; \
	tar -cf "$$tmp/tree.tar" --exclude=./.git --exclude='./$(BIN)' .; \
	tar -xf "$$tmp/tree.tar" -C "$$tmp/a"; \
	tar -xf "$$tmp/tree.tar" -C "$$tmp/another/directory"; \
	$(MAKE) --no-print-directory -C "$$tmp/a" build BIN="$$tmp/1"; \
	GOCACHE="$$tmp/cache" TZ=Pacific/Apia $(MAKE) --no-print-directory -C "$$tmp/another/directory" build BIN="$$tmp/2"; \
	for f in sandbox-exec-shim install-shim; do \
	  cmp "$$tmp/1/$$f" "$$tmp/2/$$f" || { echo "repro: $$f differs" >&2; exit 1; }; \
	done; \
	echo "repro: both builds are equal:"; cd "$$tmp/1"; sha256sum *

.PHONY: clean
clean: ## what make build and make test left
	rm -rf '$(BIN)'
