// A user's program, built by each of the projects beside it. It prints one known key, and catches
// an error of the library: that works across a shared object only if its type information is
// exported.

#include <holdfast/holdfast.hpp>

#include <iostream>

int main() {
  std::cout << holdfast::key::interop("users", "get_user", 42, true) << '\n';
  try {
    std::cout << holdfast::key::interop("not a namespace", "get_user") << '\n';
  } catch (const holdfast::error& problem) {
    std::cout << "refused: " << holdfast::to_string(problem.code()) << '\n';
  }
}
