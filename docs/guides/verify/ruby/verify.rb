# ruby verify.rb <secret> <header> [unix seconds] < body    prints "ok" or the reason (Ruby 3.0 or newer)
require "openssl"

TOLERANCE_SECONDS = 300
PART = /[a-z][a-z0-9]*=[!-+\--~]+/

# Returns "ok" or the reason for refusing. secret is the whole "whsec_..." string, header the value of
# x-service-signature, raw_body the bytes as they arrived (request.raw_post in Rails, never params), now Unix seconds.
def verify(secret, header, raw_body, now)
  return "header_malformed" unless header.match?(/\A#{PART}(,#{PART})*\z/)

  parts = header.split(",").map { |part| part.split("=", 2) }
  times = parts.filter_map { |name, value| value if name == "t" }
  signatures = parts.filter_map { |name, value| value if name == "v1" }
  return "header_malformed" unless times.length == 1 && times.first.match?(/\A(0|[1-9][0-9]{0,11})\z/)
  return "header_malformed" if signatures.empty? || signatures.any? { |hex| !hex.match?(/\A[0-9a-f]{64}\z/) }

  age = now - times.first.to_i
  return "timestamp_too_old" if age > TOLERANCE_SECONDS
  return "timestamp_too_new" if age < -TOLERANCE_SECONDS

  expected = OpenSSL::HMAC.hexdigest("SHA256", secret, "#{times.first}.".b + raw_body.b)
  signed = signatures.any? { |hex| OpenSSL.fixed_length_secure_compare(hex, expected) }
  signed ? "ok" : "signature_mismatch"
end

if __FILE__ == $PROGRAM_NAME
  secret, header, now = ARGV
  result = verify(secret, header, $stdin.binmode.read, (now || Time.now).to_i)
  puts result
  exit(result == "ok")
end
