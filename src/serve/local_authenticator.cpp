#include "serve/local_authenticator.hpp"

#include "serve/api/host_names.hpp"

#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// A browser on this machine also runs the pages of others: they must not act as an admin.
bool comes_from_foreign_page(const server_request& request) {
  const auto site = request.fields.find("Sec-Fetch-Site");
  if (site) return *site != "same-origin" && *site != "none";
  const auto origin = request.fields.find("Origin");
  if (!origin) return false;
  return *origin != "http://" + std::string(request.host) &&
         *origin != "https://" + std::string(request.host);
}

class local_identity final : public server_part, public authenticator {
 public:
  explicit local_identity(bool open) : open_(open) {}

  authenticator* identity() override { return this; }
  std::optional<bool> has_token() override { return false; }

  std::variant<caller, server_response> identify(const server_request& request) override {
    if (!open_ || !is_loopback(request.peer)) return caller{};
    if (comes_from_foreign_page(request))
      return problem_response(403, "this request was made by a page of another site");
    return caller{.name = "local", .role = role::admin, .identified = true};
  }

 private:
  const bool open_;
};

}  // namespace

std::unique_ptr<server_part> make_local_identity(bool open) {
  return std::make_unique<local_identity>(open);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
