# Everything here needs Go alone; tools come through go.mod (go tool).
GO      ?= go
# Inputs per fuzz target. A count, not a duration: go before 1.27 reports a
# duration that runs out as a failure now and then (golang/go#75804).
FUZZTIME ?= 10000x

.PHONY: build test bench lint fmt fuzz-short clean

build: ## both commands into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/infera ./cmd/inferasim

test: ## all tests
	$(GO) test ./...

bench: ## all benchmarks, one process at a time
	$(GO) test -p 1 -run '^$$' -bench . -benchmem ./...

lint: ## formatting, vet, staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted (run make fmt):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

fmt: ## format in place
	gofmt -w .

fuzz-short: ## every fuzz target on FUZZTIME inputs
	@grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do \
		dir=$$(dirname "$$file"); \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
			echo "fuzz $$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$dir" </dev/null || exit 1; \
		done; \
	done

clean:
	rm -rf bin
