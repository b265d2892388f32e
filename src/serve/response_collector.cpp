#include "serve/response_collector.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

response_collector::response_collector(const http::limits& limits, std::string_view method)
    : reader_(limits), head_budget_(limits.head) {
  reader_.set_request_method(method);
}

void response_collector::fail(exchange_status result, std::string reason) {
  response_.result = result;
  response_.reason = std::move(reason);
}

bool response_collector::add(std::string_view bytes) {
  input_.append(bytes);
  if (!in_content_ && read_heads()) return true;
  return in_content_ && read_content();
}

/// Skips interim responses, and keeps the head of the response.
bool response_collector::read_heads() {
  while (!input_.empty()) {
    const auto status = reader_.read_head(input_);
    if (status == http::read_status::incomplete) return false;
    if (status == http::read_status::failed) {
      fail_defect();
      return true;
    }
    if (!reader_.head().is_interim()) {
      keep_head();
      return false;
    }
    // Interim responses count, so that a server cannot send them without end.
    if (reader_.head_size() > head_budget_) {
      fail(exchange_status::head_limit, "there are too many interim responses");
      return true;
    }
    head_budget_ -= reader_.head_size();
    input_.erase(0, reader_.head_size());
    reader_.reset();
  }
  return false;
}

void response_collector::keep_head() {
  const auto& head = reader_.head();
  response_.status = head.status;
  if (has_receiver_) {
    in_content_ = true;
    if (receiver_ != nullptr) receiver_->on_head(head);
    input_.erase(0, reader_.head_size());
    return;
  }
  for (std::size_t i = 0; i < head.fields.size(); ++i)
    response_.fields.add(head.fields[i].name, head.fields[i].value);
  input_.erase(0, reader_.head_size());
  in_content_ = true;
}

bool response_collector::read_content() {
  for (;;) {
    const auto piece = reader_.body().read(input_);
    if (!has_receiver_) response_.body.append(piece.content);
    else if (receiver_ != nullptr && !piece.content.empty()) receiver_->on_content(piece.content);
    input_.erase(0, piece.consumed);
    if (piece.status == http::read_status::failed) {
      fail_defect();
      return true;
    }
    if (piece.status == http::read_status::complete) {
      response_.result = exchange_status::complete;
      // Bytes after the response belong to no request.
      reusable_ = reader_.head().keep_alive && input_.empty();
      return true;
    }
    if (input_.empty()) return false;
  }
}

void response_collector::fail_defect() {
  const auto problem = reader_.problem();
  auto result = exchange_status::malformed;
  switch (problem) {
    case http::defect::too_many_fields:
    case http::defect::line_too_long:
    case http::defect::head_too_large:
      result = in_content_ ? exchange_status::body_limit : exchange_status::head_limit;
      break;
    case http::defect::body_too_large:
    case http::defect::chunk_extension:
      result = exchange_status::body_limit;
      break;
    default:
      break;
  }
  fail(result, std::string(http::describe(problem)));
}

void response_collector::end(std::string reason, bool in_order) {
  if (in_content_ && in_order && reader_.body().finish())
    response_.result = exchange_status::complete;
  else fail(exchange_status::cut, std::move(reason));
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
