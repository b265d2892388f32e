// expect: there is no codec for this type; include <holdfast/nlohmann.hpp>
#include <holdfast/codec.hpp>

#include <string>

// Nobody has said how this one is written.
namespace app {
struct order {
  std::string id;
};
}  // namespace app

int main() {
#ifndef HOLDFAST_CONTROL
  (void)holdfast::encode_payload(app::order{"7"});
#endif
  (void)holdfast::encode_payload(std::string("7"));
}
