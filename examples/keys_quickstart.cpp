#include <holdfast/holdfast.hpp>

#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <vector>

int main() {
  namespace key = holdfast::key;

  // One key that services in C++, Python, Rust and TypeScript make alike.
  std::cout << key::interop("users", "get_user", 42, true) << '\n';

  // The row of a protected call: a text that people can read, and the UUID that the table keeps.
  const key::failover_keys countries({.name = "countries-by-codes", .domain = "country"});
  const std::vector<std::string> codes{"FR", "DE"};
  std::cout << countries.raw(codes) << "  " << countries(codes) << '\n';

  // What a format cannot carry is refused, and the error says where it is.
  const std::map<std::string, double> limits{{"max", std::numeric_limits<double>::infinity()}};
  try {
    std::cout << key::interop("users", "find", limits) << '\n';
  } catch (const holdfast::error& refused) {
    std::cout << refused.what() << '\n';
  }
}
