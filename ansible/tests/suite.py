"""Runs test classes in several processes, because half of a test is waiting; counts what they found."""

import multiprocessing
import sys
import time
import unittest

# More than the two cores of the machines on which the tests run: half of a test is waiting.
PROCESSES = 3


class Lines(unittest.TestResult):
    """Prints one line per test, with its seconds; a skipped test is a failed one, for nothing here may be left out."""

    n_passed = 0

    def n_faults(self):
        return len(self.failures) + len(self.errors) + len(self.unexpectedSuccesses) + len(self.skipped)

    def n_failed(self):
        """A test may have several faults, and the preparation of a class may have one without any test."""
        return max(self.testsRun - self.n_passed, min(self.n_faults(), 1))

    def startTest(self, test):
        super().startTest(test)
        self.began, self.n_before = time.monotonic(), self.n_faults()

    def stopTest(self, test):
        super().stopTest(test)
        is_good = self.n_faults() == self.n_before
        self.n_passed += is_good
        word = "ok" if is_good else "FAIL"
        name = test.id().rpartition(".")[2]
        # One write for the whole line: where Python does not buffer, print writes its end apart, and the lines of
        # two processes run into each other.
        sys.stdout.write(f"{name} ({test.id()}) ... {word} <{time.monotonic() - self.began:.3f}s>\n")
        sys.stdout.flush()


def classes(suite):
    """The names of the classes that have tests, in order."""
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from classes(entry)
        else:
            yield ".".join(entry.id().split(".")[:2])


def run(names):
    """Runs tests by their names; returns how many passed, how many failed, and what these said."""
    result = Lines()
    unittest.defaultTestLoader.loadTestsFromNames(names).run(result)
    said = [f"{test}\n{text}" for test, text in [*result.failures, *result.errors]]
    said += [f"skipped: {test}: {reason}" for test, reason in result.skipped]
    said += [f"succeeded unexpectedly: {test}" for test in result.unexpectedSuccesses]
    return result.n_passed, result.n_failed(), said


def main(names):
    loader = unittest.TestLoader()
    found = loader.discover(".")
    if loader.errors:
        sys.exit("\n".join(loader.errors))
    groups = [[name] for name in names or dict.fromkeys(classes(found))]
    with multiprocessing.get_context("spawn").Pool(PROCESSES, maxtasksperchild=1) as pool:
        results = pool.map(run, groups, chunksize=1)
    for text in (text for _, _, said in results for text in said):
        print(f"\n{text}")
    n_passed, n_failed = sum(it[0] for it in results), sum(it[1] for it in results)
    print(f"{n_passed} passed, {n_failed} failed", flush=True)
    return 0 if n_passed and not n_failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
