export default function Page() {
  return <p>Deliveries are posted to /webhooks/signalbox.</p>
}
