// The main() of every test program. It takes the locale of the environment, for C and for C++, as
// many applications do: a library that formats a number with the wrong function then writes "1,5"
// instead of "1.5" in a run under a German locale, and the test sees it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <locale>

int main(int argc, char** argv) {
  try {
    std::setlocale(LC_ALL, "");
    std::locale::global(std::locale(""));
  } catch (const std::exception& problem) {
    // A developer's machine may name a locale that was never generated: not our business. A run
    // that asked for one must have it.
    if (std::getenv("HOLDFAST_EXPECT_LOCALE") != nullptr) {
      std::cerr << "the locale of the environment is not installed: " << problem.what() << '\n';
      return EXIT_FAILURE;
    }
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
