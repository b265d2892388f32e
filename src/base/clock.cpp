#include <holdfast/clock.hpp>

namespace HOLDFAST_NAMESPACE {

clock::~clock() = default;

namespace {

class machine_clock final : public clock {
 public:
  [[nodiscard]] timestamp now() const noexcept override {
    return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
    return std::chrono::steady_clock::now();
  }
};

}  // namespace

std::shared_ptr<const clock> system_clock() {
  static const std::shared_ptr<const clock> instance = std::make_shared<machine_clock>();
  return instance;
}

}  // namespace HOLDFAST_NAMESPACE
