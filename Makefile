# "make help" lists the targets and variables.

BUILD ?= build
VALKEYMODULE_DIR ?=
SANITIZE ?=
JOBS ?= 2

HEADER_DIR := $(or $(VALKEYMODULE_DIR),build/include)
LIBRARY_CFLAGS = $(shell pkg-config --cflags libcrypto json-c)
LIBRARY_LIBS = $(shell pkg-config --libs libcrypto json-c) -lm
TEST_CFLAGS = $(shell pkg-config --cflags criterion hiredis)
TEST_LIBS = $(shell pkg-config --libs criterion hiredis)

ifneq ($(filter-out 0 no,$(SANITIZE)),)
OUT := $(BUILD)/asan
SOAK_SECONDS := 20
MODE := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
# valkey-server is not instrumented, so the runtime must come first in its LD_PRELOAD, before
# anything else a test puts there. Everything that starts a server takes the list from here.
SERVER_PRELOAD := $(OUT)/sanitized-server.so
export FF_SERVER_PRELOAD = $(shell $(CC) -print-file-name=libasan.so):$(abspath $(SERVER_PRELOAD))
else
OUT := $(BUILD)
SOAK_SECONDS := 60
MODE := -O2
endif

CFLAGS_ALL = -std=c17 -D_GNU_SOURCE -g $(MODE) -fPIC -fvisibility=hidden -ffp-contract=off \
	-Wall -Wextra -Wshadow -Wconversion -Werror \
	-Iinclude -isystem $(HEADER_DIR) $(LIBRARY_CFLAGS) -MMD -MP $(CFLAGS)

objects = $(patsubst %.c,$(OUT)/%.o,$(1))
MODULE_SOURCES := $(sort $(shell find module -name '*.c' 2>/dev/null))
BASE_SOURCES := $(filter module/base/%,$(MODULE_SOURCES))
UNIT_SOURCES := $(sort $(shell find tests/unit -name '*.c' 2>/dev/null))
SERVER_SOURCES := $(sort $(shell find tests/server -name '*.c' 2>/dev/null))
BENCH_SOURCES := $(sort $(wildcard bench/*.c))
ALL_SOURCES := $(MODULE_SOURCES) $(UNIT_SOURCES) $(SERVER_SOURCES) $(BENCH_SOURCES)
C_FILES = $(shell find module include tests bench .ci -name '*.[ch]' 2>/dev/null)

MODULE := $(OUT)/ff.so
UNIT_BINARY := $(if $(UNIT_SOURCES),$(OUT)/unit-tests)
SERVER_BINARY := $(if $(SERVER_SOURCES),$(OUT)/server-tests)

BENCH_BINARY := $(OUT)/bench/ff-bench

# A wall clock that only moves when a test says so; preloaded into servers.
CLOCK := $(OUT)/clock.so
export FF_CLOCK := $(abspath $(CLOCK))

# A second module, for tests of what others hear.
LISTENER := $(OUT)/listener.so
export FF_LISTENER := $(abspath $(LISTENER))

RUN_SUITES = OUT=$(OUT) JOBS=$(JOBS) .ci/suites.sh

# One short line for each step; V=1 shows the whole command.
SHOW = $(if $(V),,@echo '  building $@';)

.PHONY: all run test unit server-test conformance docs-test soak format lint clean help \
	bench bench-wire bench-claim bench-scan bench-flow \
	setup-build setup-run setup-test
.DEFAULT_GOAL := all

all: $(MODULE)

help:
	@echo 'make              build $(MODULE)'
	@echo 'make run          build, and start a server with the module (PORT=: which port)'
	@echo 'make test         everything below; ends with "N passed, N failed"'
	@echo 'make unit         tests of module/base, without a server'
	@echo 'make server-test  tests against real servers'
	@echo 'make conformance  replay the recordings'
	@echo 'make docs-test    run the examples of the documentation'
	@echo 'make soak         random lives against a server with all scanners on (SECONDS=: how long)'
	@echo 'make bench        measure everything, write bench/REPORT.md (20 to 40 minutes; QUICK=1: two)'
	@echo 'make bench-wire   server time of the wire functions'
	@echo 'make bench-claim  the claim cycle, bench-scan: unblocking, bench-flow: flows'
	@echo 'make format       lay out the C sources with clang-format'
	@echo 'make lint         look for mistakes with cppcheck'
	@echo 'make clean        remove what was built (the fetched valkeymodule.h stays)'
	@echo
	@echo 'SANITIZE=1            build and test under the address and undefined behaviour sanitizers'
	@echo 'BUILD=dir             build there instead of build/'
	@echo 'VALKEYMODULE_DIR=dir  where valkeymodule.h is, instead of fetching it'
	@echo 'REFERENCE=file.lua    the reference library, for the benchmarks to compare with'
	@echo 'CC=, CFLAGS=          another compiler, more flags'
	@echo 'V=1                   show the commands'

# What is missing is installed before anything is built; the scripts are silent when nothing is.
setup-build setup-run setup-test: setup-%:
	@.ci/setup.sh $*

$(MODULE): $(call objects,$(MODULE_SOURCES))
	$(SHOW)$(CC) $(MODE) -shared -Wl,-Bsymbolic -Wl,-z,defs $(LDFLAGS) -o $@ $^ $(LIBRARY_LIBS)

$(OUT)/sanitized-server.so: .ci/sanitized-server.c Makefile | setup-build
	@mkdir -p $(@D)
	$(SHOW)$(CC) -std=c17 -O2 -g -Wall -Wextra -fPIC -shared -o $@ $<

$(OUT)/unit-tests: $(call objects,$(UNIT_SOURCES) $(BASE_SOURCES))
	$(SHOW)$(CC) $(MODE) $(LDFLAGS) -o $@ $^ $(TEST_LIBS) $(LIBRARY_LIBS)

$(OUT)/server-tests: $(call objects,$(SERVER_SOURCES))
	$(SHOW)$(CC) $(MODE) $(LDFLAGS) -o $@ $^ $(TEST_LIBS) $(LIBRARY_LIBS)

$(BENCH_BINARY): $(call objects,$(BENCH_SOURCES))
	@mkdir -p $(@D)
	$(SHOW)$(CC) $(MODE) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs hiredis) -lm

$(call objects,$(MODULE_SOURCES)): | setup-build
$(call objects,$(BENCH_SOURCES)): | setup-test
$(call objects,$(BENCH_SOURCES)): CFLAGS_ALL += $(shell pkg-config --cflags hiredis)
$(call objects,$(UNIT_SOURCES) $(SERVER_SOURCES)): | setup-test
$(call objects,$(UNIT_SOURCES) $(SERVER_SOURCES)): CFLAGS_ALL += $(TEST_CFLAGS)

$(OUT)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(SHOW)$(CC) $(CFLAGS_ALL) -c -o $@ $<

-include $(patsubst %.c,$(OUT)/%.d,$(ALL_SOURCES))

run: setup-run $(MODULE) $(SERVER_PRELOAD)
	@MODULE=$(MODULE) DATA=$(BUILD)/run PORT=$(PORT) .ci/serve.sh

$(CLOCK): tests/conformance/clock.c | setup-test
	@mkdir -p $(@D)
	$(SHOW)$(CC) -O2 -shared -fPIC -o $@ $< -ldl

$(LISTENER): tests/listener/listener.c | setup-test
	@mkdir -p $(@D)
	$(SHOW)$(CC) -std=c17 -O2 -Wall -Wextra -isystem $(HEADER_DIR) -shared -fPIC -o $@ $<

test: setup-test $(MODULE) $(CLOCK) $(LISTENER) $(SERVER_PRELOAD) $(UNIT_BINARY) $(SERVER_BINARY)
	@SOAK_SECONDS=$(SOAK_SECONDS) $(RUN_SUITES) symbols unit server conformance digest hostile \
		hostile_native soak docs

unit: setup-test $(UNIT_BINARY)
	@$(RUN_SUITES) unit

server-test: setup-test $(MODULE) $(CLOCK) $(LISTENER) $(SERVER_PRELOAD) $(SERVER_BINARY)
	@$(RUN_SUITES) server

conformance: setup-test $(MODULE) $(CLOCK) $(SERVER_PRELOAD)
	@$(RUN_SUITES) conformance digest hostile hostile_native

docs-test: setup-test $(MODULE) $(SERVER_PRELOAD)
	@$(RUN_SUITES) docs

soak: setup-test $(MODULE) $(SERVER_PRELOAD)
	@SOAK_SECONDS=$(or $(SECONDS),60) SUITE_SECONDS=$$(($(or $(SECONDS),60) + 240)) $(RUN_SUITES) soak

# Each is a program of ff-bench; bench also takes BullMQ along if npm can get it.
RUN_BENCH = FF_MODULE=$(abspath $(MODULE)) REFERENCE='$(REFERENCE)' QUICK='$(QUICK)' $(BENCH_BINARY)

bench-wire bench-claim bench-scan bench-flow: bench-%: setup-test $(MODULE) $(BENCH_BINARY)
	@$(RUN_BENCH) $*

bench: setup-test $(MODULE) $(BENCH_BINARY)
	@BUILD_DIR=$(OUT)/bench bench/bullmq/setup.sh
	@FF_REPORT_DIR=bench FF_BULLMQ=$(OUT)/bench/bullmq.mjs $(RUN_BENCH) report

format:
	@.ci/setup.sh format
	clang-format -i $(C_FILES)

LINT = cppcheck --quiet --std=c11 --enable=warning,style,performance,portability --inline-suppr \
	--suppressions-list=.ci/cppcheck-suppressions --error-exitcode=1 -j $(JOBS) -Iinclude

lint:
	@.ci/setup.sh lint
	$(LINT) $(MODULE_SOURCES) $(BENCH_SOURCES)
	$(LINT) --include=.ci/criterion-for-cppcheck.h $(UNIT_SOURCES) $(SERVER_SOURCES)

clean:
	@[ ! -d $(BUILD) ] || find $(BUILD) -mindepth 1 -maxdepth 1 ! -name include -exec rm -rf {} +
