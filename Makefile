# The packages to test, for a quicker round: make test PACKAGES=./sqlgen
PACKAGES ?= ./...
# How long make fuzz runs each fuzzer.
FUZZTIME ?= 30s
# Which engine make bench measures: postgres, mysql, mariadb, sqlite or tidb.
ENGINE ?= postgres
# Which releases make matrix runs on, such as postgres-12,mariadb-11.8. All by default.
RELEASES ?=

GOLANGCI_LINT = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# The tests run under gotestsum: it prints what failed tests have printed, leaves out what the
# others have, and ends with those that failed, and with what a package printed whose tests passed.
GOTESTSUM = go run gotest.tools/gotestsum@v1.13.0 --format=pkgname-and-test-fails --hide-summary=skipped --

# What make matrix runs: all tests that depend on the server's release.
MATRIX = . ./backoff ./dialect ./examples/... ./internal/statements ./internal/store ./internal/systemtest ./migrations ./ops ./periodic ./pgnotify ./pgxqueue ./sealed ./sqlgen ./tasktest

# Modules other than the library's. The library does not depend on what only they need.
MODULES = faults bench cmd/falldue examples/transactions examples/moving examples/telemetry examples/webhooks internal/testdb/serve internal/platforms internal/chart/browser dash/browser

# Modules that applications import. Their go.mod has no replace, which applications would miss: the file
# go.work in the folder of each stands for the library's release.
EXPORTERS = otelfalldue promfalldue

# standalone runs a command of go in the module $(1) as applications build it, without go.work.
standalone = (set -e; tmp=$$(mktemp -d); trap 'rm -r "$$tmp"' EXIT; cp $(1)/go.mod $(1)/go.sum $$tmp; go mod edit -replace github.com/falldue/falldue='$(CURDIR)' $$tmp/go.mod; GOWORK=off go -C $(1) $(2) -modfile=$$tmp/go.mod $(3))

# The program that starts database servers for tests. The commands that it runs begin in its folder.
SERVE = go -C internal/testdb/serve run .

.DEFAULT_GOAL := help

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# SKIP='NAME|NAME' leaves tests out.
# Without go vet, which would analyse each package and what it imports: make lint and make portable run it. -s
# leaves out the tables for debuggers, which take a third of the time of linking.
.PHONY: test
test: ## run all tests on real servers that it finds or starts (internal/testdb)
	$(SERVE) -- $(MAKE) -C '$(CURDIR)' -k -j2 --no-print-directory suites TESTFLAGS='$(RACE) -vet=off -ldflags=-s -shuffle=on -parallel=8 -count=1 -timeout=60m$(if $(SKIP), -skip="$(SKIP)")'

# The race detector takes four times the processor's time, so it watches concurrent code only,
# on one server and on SQLite. SQLite is C that was translated to Go. With the detector in it, its
# tests take twenty times as long, so those two packages are left out.
DETECTOR = -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false
CONCURRENT = . ./dash ./flow ./internal/claim ./internal/control ./internal/lanes ./internal/lease ./internal/news ./internal/retry ./internal/run ./internal/systemtest ./internal/upkeep ./internal/worker ./many ./ops ./periodic ./pgnotify ./pgxqueue ./tasktest

# All other packages.
SEQUENTIAL = $(filter-out $(CONCURRENT),$(patsubst github.com/falldue/falldue%,.%,$(shell go list ./...)))

.PHONY: race
race: export FALLDUE_TEST_ENGINES ?= postgres,sqlite
race: ## run the tests of concurrent code with the race detector, on PostgreSQL and SQLite
	$(MAKE) test RACE='$(DETECTOR)' PACKAGES='$(CONCURRENT)'

.PHONY: short
short: ## run the tests on SQLite only, without a server
	@echo "SQLite alone; make test covers the other engines"
	@$(MAKE) -k -j2 --no-print-directory suites TESTFLAGS='-short -shuffle=on'

# suites tests PACKAGES. If those are all, it tests other modules at the same time. With -k, the failure of a module
# does not hide the failures of others.
ALL_SUITES = suite-packages suite-faults suite-bench suite-command suite-examples suite-exporters suite-serve
SUITES ?= $(if $(filter-out ./...,$(PACKAGES)),suite-packages,$(ALL_SUITES))
.PHONY: suites suite-packages suite-faults suite-bench suite-command suite-examples suite-exporters suite-serve
suites: $(SUITES)
suite-packages:
	$(GOTESTSUM) $(TESTFLAGS) $(PACKAGES)
suite-faults:
	cd faults && $(GOTESTSUM) $(TESTFLAGS) ./...
# The tests of bench need no other server than SQLite. They try that measures run, so they
# do without the race detector, which would have all that bench compares compiled again.
suite-bench:
	cd bench && $(GOTESTSUM) -short -count=1 ./...
suite-command:
	cd cmd/falldue && $(GOTESTSUM) $(TESTFLAGS) ./...
suite-examples:
	cd examples/transactions && $(GOTESTSUM) $(TESTFLAGS) ./...
	cd examples/moving && $(GOTESTSUM) $(TESTFLAGS) ./...
	cd examples/telemetry && $(GOTESTSUM) $(TESTFLAGS) -short ./...
	cd examples/webhooks && $(GOTESTSUM) $(TESTFLAGS) ./...
suite-exporters:
	cd otelfalldue && $(GOTESTSUM) $(TESTFLAGS) ./...
	cd promfalldue && $(GOTESTSUM) $(TESTFLAGS) ./...
suite-serve:
	cd internal/testdb/serve && $(GOTESTSUM) $(TESTFLAGS) ./...

# One process lints all modules but faults, in a workspace: the packages that they share are analysed once. faults
# depends on an old google.golang.org/genproto, which has packages of the newer modules that examples/telemetry needs.
WORKSPACE = $(filter-out faults,$(MODULES)) $(EXPORTERS)

.PHONY: lint
lint: ## check the code with golangci-lint, and go.mod with go mod tidy
	set -e; tmp=$$(mktemp -d); trap 'rm -r "$$tmp"' EXIT; (cd "$$tmp"; go work init '$(CURDIR)' $(patsubst %,'$(CURDIR)/%',$(WORKSPACE))); \
		GOWORK=$$tmp/go.work $(GOLANGCI_LINT) run --allow-serial-runners $(PACKAGES) $(WORKSPACE:%=./%/...)
	cd faults && $(GOLANGCI_LINT) run --allow-serial-runners
	go mod tidy -diff
	set -e; for module in $(MODULES); do go -C $$module mod tidy -diff; done
	set -e; for module in $(EXPORTERS); do $(call standalone,$$module,mod tidy -diff); done

# go.mod states the oldest Go release. Releases that differ only in their patch have one language and
# one library, so the installed one stands in for the oldest of its minor release. bench is left out: it is for Unix alone. The packages
# that users run are type-checked for the other systems: a build would compile all dependencies for each of them. Tests are
# compiled for Linux, since all but one file of them know no system.
LIBRARY = $$(go list ./... | grep -v -e /examples/ -e /internal/)

OLDEST = $(shell go list -m -f '{{.GoVersion}}')

.PHONY: portable
portable: export GOTOOLCHAIN = $(if $(filter go$(basename $(OLDEST)),$(basename $(shell go env GOVERSION))),local,go$(OLDEST))
portable: ## compile code and tests with the oldest Go release, try JSON v2, and type-check code for Windows, macOS, 32 bits
	go version
	set -e; for module in . cmd/falldue faults examples/transactions examples/moving examples/telemetry examples/webhooks internal/testdb/serve; do go -C $$module vet ./...; done
	set -e; for module in $(EXPORTERS); do $(call standalone,$$module,vet,./...); done
	go -C internal/platforms test -count=1 .
	go -C internal/platforms run . '$(CURDIR)' windows/amd64,darwin/arm64,linux/386 $(LIBRARY)
	go -C internal/platforms run . '$(CURDIR)/cmd/falldue' windows/amd64,darwin/arm64 ./...
	go -C internal/platforms run . '$(CURDIR)/internal/testdb/serve' windows/amd64,darwin/arm64 ./...
	GOEXPERIMENT=jsonv2 go test ./internal/storable

# The tests that are left out compile programs, and read no clock.
.PHONY: clock
clock: ## run the tests that read the time of day on SQLite, at each hour, on special days and nights, in three zones
	go run ./internal/anytime -skip 'TestProgramsOfMovingCompile|TestPackagesLinkOnlyListedModules' internal/anytime $(if $(filter-out ./...,$(PACKAGES)),$(PACKAGES),. dash flow internal/repotest internal/store internal/systemtest ops periodic signals sqlgen tasktest examples/shop cmd/falldue)

# Debian's names of what readers have: two programs, and fonts as wide and as narrow as theirs.
READERS = chromium librsvg2-bin fonts-dejavu-core fonts-liberation

.PHONY: npm
npm:
	@command -v npm >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends npm >/dev/null; }

.PHONY: pictures
pictures: npm ## look at all pictures and the web page in Chromium, and at the pictures in librsvg, which it installs on Debian as root
	@dpkg --status $(READERS) >/dev/null 2>&1 || { apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends $(READERS) >/dev/null; }
	go -C internal/chart/browser test -count=1 -timeout=30m ./...
	npm --prefix dash/browser ci --no-audit --no-fund
	go -C dash/browser test -count=1 -timeout=30m ./...

# The documents show some of them: copy those into docs/dashboard.
.PHONY: screenshots
screenshots: npm ## write pictures of all pages of the web page to dash/browser/out: both themes, two widths
	npm --prefix dash/browser ci --no-audit --no-fund
	mkdir -p dash/browser/out
	go -C dash/browser test -count=1 -timeout=30m -run 'TestStory$$' . -pictures out

.PHONY: golden
golden: ## rewrite the golden files of SQL; read their diff before you commit
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
faults: ## inject faults on ENGINE for MINUTES (1), from SEED, with POOLER=1 through PgBouncer; docs/fault-suite.md
	go -C faults run ./run $(if $(ENGINE),-engine $(ENGINE)) $(if $(SEED),-seed $(SEED)) $(if $(MINUTES),-minutes $(MINUTES)) $(if $(FAULTS),-faults '$(FAULTS)') $(if $(POOLER),-pooler)

.PHONY: model
model: ## check the models of the protocol (model/) with spin, which it installs on Debian as root
	@command -v spin >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends spin >/dev/null; }
	model/check

.PHONY: tidb
tidb: ## run tests and faults on TiDB, whose server it builds first: takes minutes, and 4 GB of caches
	FALLDUE_TEST_ENGINES=tidb $(MAKE) test PACKAGES='. ./backoff ./dialect ./examples/... ./internal/testdb/... ./internal/statements ./internal/store ./internal/systemtest ./migrations ./ops ./periodic ./sealed ./sqlgen ./tasktest'
	FALLDUE_TEST_ENGINES=tidb $(MAKE) alerts
	$(MAKE) faults ENGINE=tidb MINUTES=0.5

# A test borrows one of three keyspaces, so one test runs at a time.
.PHONY: vitess
vitess: ## run tests on a Vitess cluster, on Debian as root with etcd-server; builds it first, which takes many minutes and gigabytes of caches
	GOWORK=off go -C internal/testdb/vitess run . -- go -C '$(CURDIR)/faults' run ./run -engine mysql -minutes 0.5
	GOWORK=off go -C internal/testdb/vitess run . -- go -C '$(CURDIR)' test -count=1 -timeout=60m -p=1 -parallel=1 -run 'TestConformance$$|TestSeveralDatabases|TestUpDownStatus|TestManyAtOnce|TestUpgradeUnderLoad|TestNewerTablesAreLeftAlone|TestAHeldLockIsNamed|TestLostLockIsReported|TestReparents$$' . ./migrations ./internal/systemtest

# One release after the other: the machine should not be the reason for a failure.
.PHONY: matrix
matrix: ## run tests on each release of an engine that docs/engines.md names, or on RELEASES; by hand
	$(SERVE) matrix '$(RELEASES)' -- go -C '$(CURDIR)' test -count=1 -timeout=60m -skip TestConformanceWithoutAName $(if $(filter-out ./...,$(PACKAGES)),$(PACKAGES),$(MATRIX))

.PHONY: alerts
alerts: export FALLDUE_TEST_ENGINES ?= postgres,mysql,mariadb,sqlite
alerts: ## test the alert rules, and scrape workers on each engine with Debian's Prometheus, which answers rules and dashboards
	.ci/prometheus promtool check rules grafana/falldue.rules.yml
	.ci/prometheus promtool test rules grafana/falldue.rules_test.yml
	$(SERVE) -- env FALLDUE_TEST_PROMETHEUS="$$(.ci/prometheus)" go -C '$(CURDIR)/examples/telemetry' test -count=1 -run TestPrometheusScrapesWorkers .

.PHONY: dashboards
dashboards: ## write Grafana's dashboards in grafana/ from internal/grafana
	go run ./internal/grafana

.PHONY: quickstart
quickstart: ## show what falldue does, on SQLite in a temporary file
	go run ./examples/quickstart

.PHONY: outage
outage: ## show an outage: a policy changed meanwhile, a killed worker, a ramp; on SQLite in a temporary file
	go run ./examples/outage

# VitePress fails if a page links to one that does not exist.
.PHONY: site
site: npm ## build the documents as a site with search in site/dist, with npm
	npm --prefix site ci --no-audit --no-fund
	npm --prefix site run build

.PHONY: bench
bench: ## measure falldue beside its peers on ENGINE (postgres), a short form of docs/benchmarks/records.md
	cd bench && go run . --engine $(ENGINE) --tasks 10000 --backlog 100000 --while 1s --storm 10s

.PHONY: release-try
release-try: ## tag a release in a clone, and install the command from it through a module proxy in a folder
	.ci/release --try

.PHONY: ci
ci: ## run everything that a change must pass, on a Debian machine as root
	.ci/run
