// A type of your own joins every scheme with one function, which says what of it belongs to a key.

#include <holdfast/key.hpp>

#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace shop {

// region type
struct money {
  std::string currency;
  std::int64_t cents = 0;
  // Not part of the key: two amounts are the same amount whatever was noted about them
  std::string comment;
};

auto holdfast_key(const money& m) { return std::tuple(m.currency, m.cents); }
// endregion

// region enumeration
enum class state : std::uint8_t { open = 1, paid = 2 };

// The text is the key. A row written today is still found after someone renumbers the enumerators.
std::string_view holdfast_key(state s) { return s == state::open ? "OPEN" : "PAID"; }
// endregion

}  // namespace shop

int main() {
  // region use
  const holdfast::key::failover_keys invoices({.name = "invoices"});
  const shop::money price{"EUR", 4200, "as agreed on the phone"};

  std::cout << invoices.raw(price, shop::state::open) << '\n';
  std::cout << invoices.raw(std::vector{price, price}) << '\n';
  std::cout << holdfast::key::interop("shop", "invoices", price, shop::state::paid) << '\n';
  // endregion
}
