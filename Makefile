# What to test, for a quicker round: make test PACKAGES=./sqlgen
PACKAGES ?= ./...
# How long each fuzzer runs in make fuzz.
FUZZTIME ?= 30s
# Which engine make bench measures: postgres, mysql, mariadb or sqlite.
ENGINE ?= postgres

GOLANGCI_LINT = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.DEFAULT_GOAL := help

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: ## run all tests on real servers, which it finds or starts (internal/testdb)
	go run ./internal/testdb/serve -- go test -race -shuffle=on -count=1 -timeout=30m $(PACKAGES)

.PHONY: short
short: ## run what needs no server: SQLite stands for all engines
	@echo "-short: SQLite alone; make test covers the other engines"
	go test -short -shuffle=on $(PACKAGES)

.PHONY: lint
lint: ## check the code with golangci-lint
	$(GOLANGCI_LINT) run $(PACKAGES)
	cd bench && $(GOLANGCI_LINT) run

.PHONY: golden
golden: ## write the golden files of SQL anew; read their diff before you commit
	go test ./internal/statements -update

.PHONY: fuzz
fuzz: ## run each fuzzer for FUZZTIME (30s)
	@set -e; for pkg in $$(go list ./...); do \
	  for fuzzer in $$(go test -short -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$fuzzer"; \
	    go test $$pkg -short -run '^$$' -fuzz "^$$fuzzer$$" -fuzztime $(FUZZTIME); \
	  done; \
	done

.PHONY: faults
faults: ## let things go wrong on ENGINE for MINUTES (1), from SEED; docs/guarantees.md
	go run ./internal/faults/run $(if $(ENGINE),-engine $(ENGINE)) $(if $(SEED),-seed $(SEED)) $(if $(MINUTES),-minutes $(MINUTES)) $(if $(FAULTS),-faults '$(FAULTS)')

.PHONY: tidb
tidb: ## run the tests and faults on TiDB, whose server it builds first: minutes, and 4 GB of caches
	FALLDUE_TEST_ENGINES=tidb $(MAKE) test PACKAGES='. ./backoff ./cmd/... ./dialect ./examples/... ./internal/testdb/... ./migrations ./sqlgen'
	$(MAKE) faults ENGINE=tidb MINUTES=0.5

.PHONY: quickstart
quickstart: ## show what falldue does, on SQLite in a temporary file
	go run ./examples/quickstart

.PHONY: bench
bench: ## measure falldue beside its peers on ENGINE (postgres), a short form of docs/benchmarks.md
	cd bench && go run . --engine $(ENGINE) --tasks 10000 --backlog 100000 --while 1s --storm 10s

.PHONY: ci
ci: ## run everything that a change must pass, on a Debian machine as root
	.ci/run
