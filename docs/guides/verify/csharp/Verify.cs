// dotnet run Verify.cs <secret> <header> [unix seconds] < body    prints "ok" or the reason (.NET 10 or newer)
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;

var seconds = args.Length > 2 ? long.Parse(args[2]) : DateTimeOffset.UtcNow.ToUnixTimeSeconds();
using var body = new MemoryStream();
Console.OpenStandardInput().CopyTo(body);
var result = Delivery.Verify(args[0], args[1], body.ToArray(), seconds);
Console.WriteLine(result);
return result == "ok" ? 0 : 1;

public static class Delivery
{
    private const long ToleranceSeconds = 300;
    private const string Part = @"[a-z][a-z0-9]*=[!-+\--~]+";

    /// <summary>
    /// Returns "ok" or the reason for refusing. secret is the whole "whsec_..." string, header the value of
    /// x-service-signature, rawBody the bytes as they arrived (never re-serialised JSON), now Unix seconds.
    /// </summary>
    public static string Verify(string secret, string header, byte[] rawBody, long now)
    {
        if (!Regex.IsMatch(header, $@"\A{Part}(,{Part})*\z")) return "header_malformed";
        var parts = header.Split(',').Select(part => part.Split('=', 2)).ToList();
        var times = parts.Where(pair => pair[0] == "t").Select(pair => pair[1]).ToList();
        var signatures = parts.Where(pair => pair[0] == "v1").Select(pair => pair[1]).ToList();
        if (times.Count != 1 || !Regex.IsMatch(times[0], @"\A(0|[1-9][0-9]{0,11})\z")) return "header_malformed";
        if (signatures.Count == 0) return "header_malformed";
        if (!signatures.All(hex => Regex.IsMatch(hex, @"\A[0-9a-f]{64}\z"))) return "header_malformed";

        var age = now - long.Parse(times[0]);
        if (age > ToleranceSeconds) return "timestamp_too_old";
        if (age < -ToleranceSeconds) return "timestamp_too_new";

        var signed = Encoding.UTF8.GetBytes(times[0] + ".").Concat(rawBody).ToArray();
        var expected = HMACSHA256.HashData(Encoding.UTF8.GetBytes(secret), signed);
        var isSigned = signatures.Any(hex => CryptographicOperations.FixedTimeEquals(Convert.FromHexString(hex), expected));
        return isSigned ? "ok" : "signature_mismatch";
    }
}
