// Redis Cluster: keys that belong together must land in one slot.

#include <holdfast/key.hpp>

#include <iostream>

namespace key = holdfast::key;

int main() {
  // region slots
  std::cout << key::redis_slot("user:1:name") << ' ' << key::redis_slot("user:1:mail") << '\n';
  std::cout << key::redis_slot("{user:1}:name") << ' ' << key::redis_slot("{user:1}:mail") << '\n';
  // endregion

  // region outbox
  const key::outbox_keys outbox(key::redis_prefix("{billing:outbox}"));
  for (const auto& each :
       {outbox.entries(), outbox.pending(), outbox.expiry_due(), outbox.lock()}) {
    std::cout << key::redis_slot(each) << ' ' << each << '\n';
  }
  // endregion

  // region refused
  try {
    const key::redis_prefix scattered("billing:outbox");
  } catch (const holdfast::error& refused) {
    std::cout << refused.what() << '\n';
  }
  // endregion
}
