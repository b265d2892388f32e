// Arguments that are only known at run time: typed JSON becomes values, values become keys. One bad
// argument, one clear error.

#include <holdfast/key.hpp>

#include <iostream>
#include <string_view>
#include <vector>

namespace key = holdfast::key;

int main() {
  // region values
  key::typed_json_reader reader(key::scheme::interop);
  const std::vector<key::value> args{reader.read(R"({"t":"int","v":"42"})"),
                                     reader.read(R"({"t":"bool","v":true})")};
  const key::interop_keys get_user("users", "get_user");
  std::cout << (get_user.of(args) == get_user(42, true) ? "the same key" : "another key") << '\n';
  // endregion

  // region error
  try {
    const key::value bad = reader.read(
        R"({"t":"map","v":[[{"t":"str","v":"a"},{"t":"list","v":[{"t":"int","v":"18446744073709551616"}]}]]})");
    static_cast<void>(get_user("x", 1, bad));
  } catch (const holdfast::error& refused) {
    std::cout << "code     " << to_string(refused.code()) << '\n'
              << "path     " << refused.path() << '\n'
              << "message  " << refused.message() << '\n';
  }
  // endregion

  // region batch
  key::batch cases({.scheme = key::scheme::failover});
  std::string answers;
  cases.run(R"({"id":1,"name":"country-by-code","args":[{"t":"str","v":"FR"}]})", answers);
  cases.run(R"({"id":2,"name":"country-by-code","args":[{"t":"mystery"}]})", answers);
  std::cout << answers;
  // endregion
}
