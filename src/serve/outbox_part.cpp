#include "serve/outbox_part.hpp"

#include "serve/api/claim_polls.hpp"
#include "serve/api/outbox_endpoints.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

class outbox_part final : public server_part {
 public:
  void add_endpoints(endpoint_table& table, services& shared) override {
    polls_ = std::make_unique<claim_polls>(shared);
    add_outbox_endpoints(table, shared, *polls_);
  }
  void drain() noexcept override {
    if (polls_) polls_->drain();
  }
  std::vector<std::string> finish(std::chrono::steady_clock::time_point deadline) override {
    if (!polls_ || polls_->close(deadline)) return {};
    return {"a claim that waits for its database"};
  }

 private:
  std::unique_ptr<claim_polls> polls_{};
};

}  // namespace

std::unique_ptr<server_part> make_outbox_part() { return std::make_unique<outbox_part>(); }

}  // namespace HOLDFAST_NAMESPACE::detail::serve
